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
)

// setupTimeout is the time limit for the setup of hosts.
const setupTimeout = 25 * time.Minute

// A streams has the numbers of streams for which a stack is set up; 0: not set.
type streams struct {
	connections int
	interval    float64 // seconds
}

// variables returns the given values as make accepts them.
func (s streams) variables() (text string) {
	if s.connections != 0 {
		text = " CONNECTIONS=" + strconv.Itoa(s.connections)
	}
	if s.interval != 0 {
		text += " NOOP_INTERVAL=" + strconv.FormatFloat(s.interval, 'g', -1, 64)
	}
	return text
}

// match returns an error if a value was given and differs from the settings, which are in where.
func (s streams) match(of settings, where string) error {
	has := streams{of.Connections, of.Interval}
	if (streams{cmp.Or(s.connections, has.connections), cmp.Or(s.interval, has.interval)}) != has {
		return fmt.Errorf("%s has%s, not%s; change it there, or leave it out here", where, has.variables(), s.variables())
	}
	return nil
}

// up creates the stack and the runners, and waits for their hosts.
func (d *deployment) up(ctx context.Context, typed streams) error {
	d.set("stack_dir", "../../bin/aws/stack") // created by `make aws-files`
	d.set("runner_dir", "../../bin/aws/runner")
	s, err := d.plannedSite(ctx)
	if err != nil {
		return err
	}
	before := s.output.Settings // a second `up` keeps the number of streams of the first one
	if connections := cmp.Or(typed.connections, before.Connections); connections != 0 {
		d.set("connections", strconv.Itoa(connections))
	}
	if interval := cmp.Or(typed.interval, before.Interval); interval != 0 {
		d.set("noop_interval_seconds", strconv.FormatFloat(interval, 'g', -1, 64))
	}
	if s.settings, err = d.readSettings(ctx); err != nil {
		return err
	}
	if err := typed.match(s.settings, "terraform.tfvars"); err != nil {
		return err
	}
	for _, met := range []check{s.checkPrice, s.checkOwner} {
		state, sentence := met.result(ctx)
		if state == "FAIL" {
			return fmt.Errorf("%s; nothing was created", sentence)
		}
		fmt.Println(sentence)
	}
	d.set("owner", cmp.Or(before.Owner, s.aws.ARN)) // a tag that changed with each session would change every resource
	if err := s.apply(ctx); err != nil {
		return fmt.Errorf("%w; hosts that exist cost money until they terminate themselves.\n  continue:  %s%s\n  clean up:  %s",
			err, d.target("aws-up"), typed.variables(), d.target("aws-down"))
	}
	fmt.Printf("\nstack    %s (for the runners; laptops, if laptop_cidrs lets them in: %s)\ngrafana  bin/soak-aws open\n"+
		"next     make aws-soak, then make aws-down. Each host terminates itself %d minutes after its start.\n",
		s.output.BackendURL, s.output.PublicURL, s.settings.TTLMinutes)
	return nil
}

// apply creates the resources of the settings, and waits for the hosts. It replaces failed hosts, since user data
// runs once.
func (s *site) apply(ctx context.Context) error {
	var args []string
	for name, host := range s.output.Statuses {
		if state, _ := setup(s.values[name], host); state == setupFailed {
			address := s.inState(ctx, "-id="+host)
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

// setup returns the state of a host's setup from the value of its parameter, STATE HOST DETAILS. The value of another host counts
// as pending: parameters outlive hosts.
func setup(value, host string) (state, details string) {
	state, text, _ := strings.Cut(value, " ")
	id, details, _ := strings.Cut(text, " ")
	if id != host {
		return setupPending, ""
	}
	return state, details
}

// awaitHosts waits until each host has stored that it is ready, and prints each one that is.
func (s site) awaitHosts(ctx context.Context, pause time.Duration) error {
	statuses := s.output.Statuses
	fmt.Printf("waiting for %d hosts to set themselves up, which takes some minutes\n", len(statuses))
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
					"  look:      aws ssm start-session --region %s --target %[1]s, and there /var/log/cloud-init-output.log",
					host, name, details, s.settings.Region)
			}
		}
		return len(ready) == len(statuses), err
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%d of %d hosts are not ready after %v", len(statuses)-len(ready), len(statuses), setupTimeout)
	}
	return err
}
