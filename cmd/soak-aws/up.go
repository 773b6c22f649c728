package main

import (
	"cmp"
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

// unreachable is how long AWS may be out of reach while hosts are awaited: a laptop loses its network, or sleeps.
const unreachable = 5 * time.Minute

// An up holds the settings of `soak-aws up`.
type up struct {
	stack, runner string  // folders with the files of the hosts
	connections   int     // 0: as the stack is, or the default
	interval      float64 // seconds; 0: as the stack is, or the default
}

// up makes the stack and the runners, and waits for their hosts.
func (d *deployment) up(ctx context.Context, u up) error {
	if err := d.init(ctx); err != nil {
		return err
	}
	out, err := d.outputs(ctx)
	if err != nil && !errors.Is(err, errNoOutputs) {
		return err
	}
	typed := u
	u.connections, u.interval = cmp.Or(u.connections, out.Connections), cmp.Or(u.interval, out.Interval)
	for variable, value := range map[string]string{"connections": strconv.Itoa(u.connections), "noop_interval_seconds": strconv.FormatFloat(u.interval, 'g', -1, 64)} {
		if value != "0" {
			d.set(variable, value)
		}
	}
	for variable, folder := range map[string]string{"stack_dir": u.stack, "runner_dir": u.runner} {
		path, err := filepath.Abs(folder)
		if err != nil {
			return err
		}
		if _, err := os.Stat(path); err == nil { // terraform knows whether a missing one is needed
			d.set(variable, path)
		}
	}
	return d.apply(ctx, out, typed)
}

// remedy returns the commands after an apply that failed, as the user typed them.
func (d *deployment) remedy(u up) string {
	again := d.target("aws-up")
	if u.connections != 0 {
		again += " CONNECTIONS=" + strconv.Itoa(u.connections)
	}
	if u.interval != 0 {
		again += " NOOP_INTERVAL=" + strconv.FormatFloat(u.interval, 'g', -1, 64)
	}
	return "hosts that exist cost money until they terminate themselves.\n  continue:  " + again + "\n  clean up:  " + d.target("aws-down")
}

// apply makes what the settings say, and waits until the hosts are set up.
func (d *deployment) apply(ctx context.Context, before outputs, typed up) error {
	s, err := d.settings(ctx)
	if err != nil {
		return err
	}
	if err := s.differ(settingsFile, typed.connections, typed.interval); err != nil {
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
	if owner := d.checkOwner(ctx, aws, s); owner.state == "FAIL" {
		return fmt.Errorf("%s; nothing was made", owner.sentence)
	}
	d.set("owner", cmp.Or(before.Owner, aws.arn)) // a tag that changed with each session would change every resource
	remedy := d.remedy(typed)
	replace, err := d.failedHosts(ctx, aws, before)
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
func (d *deployment) failedHosts(ctx context.Context, aws *cloud, out outputs) (args []string, err error) {
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
	for _, host := range failed {
		address := d.inState(ctx, "-id="+host)
		fmt.Printf("replacing %s, whose setup failed\n", address)
		args = append(args, "-replace="+address)
	}
	return args, nil
}

// awaitHosts waits until each host has stored that it is ready, and prints each one that is.
func awaitHosts(ctx context.Context, aws *cloud, statuses map[string]string, every time.Duration) error {
	fmt.Printf("waiting for %d hosts to set themselves up, which takes some minutes\n", len(statuses))
	begun, failing := time.Now(), time.Time{}
	names, ready := slices.Sorted(maps.Keys(statuses)), map[string]bool{}
	err := poll(ctx, every, patience, func() (bool, error) {
		values, err := aws.parameters(ctx, names...)
		switch {
		case err == nil:
			failing = time.Time{}
		case code(err) != "" && code(err) != "ThrottlingException", ctx.Err() != nil:
			return false, err
		case failing.IsZero():
			failing = time.Now()
			fmt.Printf("%v; asking again for %v\n", err, unreachable)
		case time.Since(failing) > unreachable:
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
