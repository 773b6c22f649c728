package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// patience is how long hosts may take to set themselves up.
const patience = 25 * time.Minute

// up has what the stack and the runners are made for.
type up struct {
	archive     string
	image       string
	connections int
	interval    float64 // seconds
}

// takeFiles hands the stack's archive and the runners' image over. One that is missing is for terraform to refuse, which
// knows whether there are runners.
func (d *deployment) takeFiles(archive, image string) error {
	for variable, file := range map[string]string{"stack_archive_file": archive, "runner_image_file": image} {
		path, err := filepath.Abs(file)
		if err != nil {
			return err
		}
		if _, err := os.Stat(path); err != nil {
			continue
		}
		d.set(variable, path)
		if variable == "runner_image_file" {
			d.image = path
		}
	}
	return nil
}

// imageFits looks into the image before anything is made for it: a pod that cannot start its program says so after
// minutes, and on a cluster that costs money.
func (d *deployment) imageFits(s settings) error {
	if d.image == "" {
		return nil
	}
	images, err := readImages(d.image)
	if err != nil {
		return err
	}
	if err := images.fits(s.RunnerArch); err != nil {
		return fmt.Errorf("%w: `make aws-up` builds it for them", err)
	}
	return nil
}

// up makes all of it.
func (d *deployment) up(ctx context.Context, u up) error {
	d.set("connections", strconv.Itoa(u.connections))
	d.set("noop_interval_seconds", strconv.FormatFloat(u.interval, 'g', -1, 64))
	if err := d.takeFiles(u.archive, u.image); err != nil {
		return err
	}
	return d.apply(ctx)
}

// apply makes what the settings say, and waits until the hosts are set up.
func (d *deployment) apply(ctx context.Context) error {
	if err := d.init(ctx); err != nil {
		return err
	}
	s, err := d.settings(ctx)
	if err != nil {
		return err
	}
	if err := d.imageFits(s); err != nil {
		return err
	}
	cost := d.affordable(s)
	if cost.state == "FAIL" {
		return fmt.Errorf("%s; nothing was made", cost.sentence)
	}
	fmt.Printf("price    %s\n", cost.sentence)
	aws, err := connect(ctx, s.Region)
	if err != nil {
		return err
	}
	const remedy = "hosts that exist cost money until they terminate themselves.\n  continue:  make aws-up\n  clean up:  make aws-down"
	replace, err := d.failedHosts(ctx, aws)
	if err != nil {
		return err
	}
	if err := d.change(ctx, "apply", replace...); err != nil {
		return fmt.Errorf("%w; %s", err, remedy)
	}
	out, err := d.outputs(ctx)
	if err != nil {
		return err
	}
	if err := awaitHosts(ctx, aws, out.Statuses, 5*time.Second); err != nil {
		if ctx.Err() != nil {
			return err
		}
		return fmt.Errorf("%w\n%s\n  look:      bin/soak-aws logs, or %s", err, remedy, out.SSMCommand)
	}
	fmt.Printf("\nstack    %s (for the runners; laptops, where laptop_cidrs lets them in: %s)\ngrafana  bin/soak-aws open\n"+
		"next     make aws-soak, then make aws-down. Every host ends itself %d minutes after its start.\n",
		out.BackendURL, out.PublicURL, out.TTLMinutes)
	return nil
}

// A setup is what a host stores about its setup: the state, the id of the host, and where it failed.
type setup struct{ state, host, details string }

// The states of a setup.
const (
	setupReady  = "ready"
	setupFailed = "failed"
)

// setupOf parses the value of a status parameter. The value of another host counts as pending: parameters outlive hosts.
func setupOf(value, host string) setup {
	state, rest, _ := strings.Cut(value, " ")
	id, details, _ := strings.Cut(rest, " ")
	if id != host {
		return setup{state: pending, host: host}
	}
	return setup{state: state, host: id, details: details}
}

// failedHosts returns arguments of terraform that replace the hosts whose setup failed: user data runs once, so only a new host
// can succeed.
func (d *deployment) failedHosts(ctx context.Context, aws *cloud) (args []string, err error) {
	out, err := d.outputs(ctx)
	if errors.Is(err, errNoOutputs) || err == nil && len(out.Statuses) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	values, err := aws.parameters(ctx, slices.Sorted(maps.Keys(out.Statuses))...)
	if err != nil {
		return nil, nil //nolint:nilerr // terraform makes missing parameters and reports missing rights
	}
	var failed []string
	for name, host := range out.Statuses {
		if setupOf(values[name], host).state == setupFailed {
			failed = append(failed, host)
		}
	}
	if len(failed) == 0 {
		return nil, nil
	}
	addresses, err := d.addresses(ctx, failed)
	for _, address := range addresses {
		fmt.Printf("replacing %s, whose setup failed\n", address)
		args = append(args, "-replace="+address)
	}
	return args, err
}

// awaitHosts waits until each host has stored that it is ready, and prints each one that is.
func awaitHosts(ctx context.Context, aws *cloud, statuses map[string]string, every time.Duration) error {
	fmt.Printf("waiting for %d hosts to set themselves up, which takes some minutes\n", len(statuses))
	begun := time.Now()
	names, ready := slices.Sorted(maps.Keys(statuses)), map[string]bool{}
	err := poll(ctx, every, patience, func() (bool, error) {
		values, err := aws.parameters(ctx, names...)
		if err != nil {
			return false, err
		}
		for _, name := range names {
			switch s := setupOf(values[name], statuses[name]); {
			case s.state == setupReady && !ready[name]:
				ready[name] = true
				fmt.Printf("%8s  %s is ready\n", time.Since(begun).Round(time.Second), name)
			case s.state == setupFailed:
				return false, fmt.Errorf("setup of the host %s (%s) failed %s", s.host, name, s.details)
			}
		}
		return len(ready) == len(statuses), nil
	})
	if errors.Is(err, errTooLong) {
		return fmt.Errorf("%d of %d hosts are not ready after %v", len(statuses)-len(ready), len(statuses), patience)
	}
	return err
}
