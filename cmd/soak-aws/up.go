package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// patience is how long hosts may take to set themselves up.
const patience = 25 * time.Minute

// up has what the stack and the runners are made for.
type up struct {
	image       string
	connections int
	interval    float64 // seconds
	runnerArch  string
}

// takeRepository makes the stack run the commit that is checked out here, after looking that its
// host will be able to fetch it: that fails for sure if it was not pushed.
func (d *deployment) takeRepository(ctx context.Context) error {
	commit, err := git(ctx, "rev-parse", "HEAD")
	if err != nil {
		return fmt.Errorf("the stack runs a commit of this repository, but this folder is none: %w", err)
	}
	d.set("repository_commit", commit)
	if os.Getenv("TF_VAR_repository_url") == "" {
		origin, err := git(ctx, "remote", "get-url", "origin")
		if err != nil {
			return errors.New("this repository has no remote `origin`, from which the stack could clone it: add one, or set TF_VAR_repository_url")
		}
		d.set("repository_url", overHTTPS(origin))
	}
	if changes, err := git(ctx, "status", "--porcelain", "--untracked-files=no"); err == nil && changes != "" {
		fmt.Fprintf(os.Stderr, "soak-aws: warning: there are changes that are not committed; the stack runs %s without them\n", commit[:12])
	}
	return nil
}

// overHTTPS turns git's address of a repository by SSH into that of the same one by HTTPS.
func overHTTPS(origin string) string {
	origin = strings.TrimPrefix(origin, "ssh://")
	if rest, ok := strings.CutPrefix(origin, "git@"); ok {
		return "https://" + strings.Replace(rest, ":", "/", 1)
	}
	return origin
}

func git(ctx context.Context, args ...string) (string, error) {
	text, err := exec.CommandContext(ctx, "git", args...).Output()
	return strings.TrimSpace(string(text)), err
}

// takeImage hands the runners' image over. One that is missing is for terraform to refuse, which
// knows whether there are runners.
func (d *deployment) takeImage(image string) error {
	path, err := filepath.Abs(image)
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); err == nil {
		d.image = path
		d.set("runner_image_file", path)
	}
	return nil
}

// imageFits looks into the image before anything is made for it: a pod that cannot start its program says so after
// minutes, and on a cluster that costs money.
func (d *deployment) imageFits(ctx context.Context) error {
	if d.image == "" {
		return nil
	}
	images, err := readImages(d.image)
	if err != nil {
		return err
	}
	if err := images.fits(d.variable(ctx, "runner_architecture")); err != nil {
		return fmt.Errorf("%w: `make aws-up RUNNER_ARCH=amd64` (or arm64) builds it for them", err)
	}
	return nil
}

// up makes all of it.
func (d *deployment) up(ctx context.Context, u up) error {
	if err := d.takeRepository(ctx); err != nil {
		return err
	}
	d.set("connections", strconv.Itoa(u.connections))
	d.set("noop_interval_seconds", strconv.FormatFloat(u.interval, 'g', -1, 64))
	d.set("runner_architecture", u.runnerArch)
	if err := d.takeImage(u.image); err != nil {
		return err
	}
	return d.apply(ctx)
}

// apply makes what the settings say, and waits until the hosts are set up.
func (d *deployment) apply(ctx context.Context) error {
	if err := d.talk(ctx, "init", "-input=false"); err != nil {
		return err
	}
	if err := d.imageFits(ctx); err != nil {
		return err
	}
	region := d.variable(ctx, "region")
	aws, err := connect(ctx, region)
	if err != nil {
		return err
	}
	const remedy = "what was made so far goes on costing money until its time is over.\n  continue:  make aws-up\n  clean up:  make aws-down"
	if err := d.talk(ctx, "apply"); err != nil {
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
		return fmt.Errorf("%w\n%s\n  look:      make aws-logs, or %s", err, remedy, out.SSMCommand)
	}
	fmt.Printf("\nstack    %s (runners go to %s)\ngrafana  %s (user admin; the password: GRAFANA_PASSWORD in the parameter %s)\n"+
		"next     make aws-soak, then make aws-down. Every host ends itself %d minutes after its start.\n",
		out.PublicURL, out.BackendURL, out.GrafanaURL, out.Secrets, out.TTLMinutes)
	return nil
}

// awaitHosts waits until each host has said in its parameter that it is ready, and tells of each that is.
func awaitHosts(ctx context.Context, aws *cloud, statuses []string, every time.Duration) error {
	fmt.Printf("waiting for %d hosts to set themselves up, which takes some minutes\n", len(statuses))
	begun := time.Now()
	ready := map[string]bool{}
	err := poll(ctx, every, patience, func() (bool, error) {
		values, err := aws.parameters(ctx, statuses...)
		if err != nil {
			return false, err
		}
		for _, name := range statuses {
			switch value := values[name]; {
			case value == "ready" && !ready[name]:
				ready[name] = true
				fmt.Printf("%8s  %s is ready\n", time.Since(begun).Round(time.Second), name)
			case value != "ready" && value != pending:
				return false, fmt.Errorf("a host could not set itself up: %s says %q", name, value)
			}
		}
		return len(ready) == len(statuses), nil
	})
	if errors.Is(err, errTooLong) {
		return fmt.Errorf("%d of %d hosts are not ready after %v", len(statuses)-len(ready), len(statuses), patience)
	}
	return err
}
