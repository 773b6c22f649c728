package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
)

const setupTimeout = 25 * time.Minute

// streams has the number and the noop interval of the streams that a stack supports. A value of 0 is not set.
type streams struct {
	Connections int
	Interval    float64 `json:"noop_interval_seconds"`
}

// variables returns the values that are set. They have the format of variables of make, each after a space.
func (s streams) variables() (text string) {
	if s.Connections != 0 {
		text = " CONNECTIONS=" + strconv.Itoa(s.Connections)
	}
	if s.Interval != 0 {
		text += " NOOP_INTERVAL=" + strconv.FormatFloat(s.Interval, 'g', -1, 64)
	}
	return text
}

// match returns an error if a value of s is set and differs from current. place describes the origin of current.
func (s streams) match(current streams, place string) error {
	if (streams{cmp.Or(s.Connections, current.Connections), cmp.Or(s.Interval, current.Interval)}) != current {
		return fmt.Errorf("%s has%s, not%s; change %[1]s, or omit%[3]s", place, current.variables(), s.variables())
	}
	return nil
}

func (d *deployment) up(ctx context.Context, requested streams) error {
	d.set("stack_dir", "../../bin/aws/stack") // created by `make aws-files`
	d.set("runner_dir", "../../bin/aws/runner")
	s, err := d.plannedSite(ctx)
	if err != nil {
		return err
	}
	existing := s.output.Settings // a second `up` without these values keeps the values of the first one
	if connections := cmp.Or(requested.Connections, existing.Connections); connections != 0 {
		d.set("connections", strconv.Itoa(connections))
	}
	if interval := cmp.Or(requested.Interval, existing.Interval); interval != 0 {
		d.set("noop_interval_seconds", strconv.FormatFloat(interval, 'g', -1, 64))
	}
	if s.settings, err = d.readSettings(ctx); err != nil {
		return err
	}
	if err := requested.match(s.settings.streams, "terraform.tfvars (or a TF_VAR_ variable)"); err != nil {
		return err
	}
	for _, c := range []check{s.checkPrice, s.checkOwner} {
		state, sentence := c.result(ctx)
		if state == "FAIL" {
			return fmt.Errorf("%s (nothing was created)", sentence)
		}
		fmt.Println(sentence)
	}
	d.set("owner", cmp.Or(existing.Owner, s.aws.ARN)) // a tag that differs in each session would change all resources
	if err := s.apply(ctx); err != nil {
		return fmt.Errorf("%w (hosts that exist cost money until they terminate themselves)\n  continue:  %s%s\n  clean up:  %s",
			err, d.makeCommand("aws-up"), requested.variables(), d.makeCommand("aws-down"))
	}
	fmt.Printf("\nstack    %s (for the runners; for laptops in laptop_cidrs: %s)\ngrafana  %s\n"+
		"next     %s, then %s. Each host terminates itself %d minutes after its start.\n",
		s.output.BackendURL, s.output.PublicURL, d.soakAWS("open"), d.makeCommand("aws-soak"), d.makeCommand("aws-down"), s.settings.TTLMinutes)
	return nil
}

// apply creates the resources. It replaces hosts whose setup failed, because each host runs its user data only once.
func (s *site) apply(ctx context.Context) error {
	var args []string
	for name, host := range s.output.Statuses {
		if state, _ := setup(s.values[name], host); state == setupFailed {
			address := s.addressesInState(ctx, "-id="+host)
			fmt.Printf("replacing %s, whose setup failed\n", address)
			args = append(args, "-replace="+address)
		}
	}
	err := s.change(ctx, "apply", args...)
	if err == nil {
		s.output, err = s.outputs(ctx)
	}
	if err == nil {
		err = s.awaitHosts(ctx, 5*time.Second)
	}
	return err
}

const (
	setupPending = "pending"
	setupReady   = "ready"
	setupFailed  = "failed"
)

// setup returns the state of a host's setup from its parameter (STATE HOST DETAILS). A value with the id of another
// host means pending, because parameters outlive hosts.
func setup(value, host string) (state, details string) {
	state, text, _ := strings.Cut(value, " ")
	id, details, _ := strings.Cut(text, " ")
	if id != host {
		return setupPending, ""
	}
	return state, details
}

func (s site) awaitHosts(ctx context.Context, pause time.Duration) error {
	statuses := s.output.Statuses
	fmt.Printf("waiting for the setup of %s, which takes a few minutes\n", format.Count(len(statuses), "host"))
	start, ready := time.Now(), map[string]bool{}
	err := poll(ctx, pause, setupTimeout, func() (bool, error) {
		values, err := s.parameters(ctx)
		for _, name := range slices.Sorted(maps.Keys(statuses)) {
			host := statuses[name]
			switch state, details := setup(values[name], host); {
			case state == setupReady && !ready[name]:
				ready[name] = true
				fmt.Printf("%8s  %s is ready\n", time.Since(start).Round(time.Second), name)
			case state == setupFailed:
				return false, refuse("setup of the host %s (%s) failed %s\n"+
					"  look:      aws ssm start-session --region %s --target %[1]s, then read /var/log/cloud-init-output.log",
					host, name, details, s.settings.Region)
			}
		}
		return len(ready) == len(statuses), err
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the setup of %d of %s took over %v", len(statuses)-len(ready), format.Count(len(statuses), "host"), setupTimeout)
	}
	return err
}
