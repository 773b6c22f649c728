package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// soak runs `soak run --on k8s` with what terraform made. Its exit code is the verdict.
func (d *deployment) soak(ctx context.Context, program string, args []string) error {
	connections, _ := valueOf("--connections", args)
	interval, _ := valueOf("--noop-interval", args)
	streams, _ := strconv.Atoi(connections)
	seconds, _ := strconv.ParseFloat(interval, 64)
	return d.drive(ctx, program, args, secondsOf(args), func(out outputs, via string) ([]string, error) {
		return out.flags(via), settings{Connections: out.Connections, Interval: out.Interval}.differ("the stack, which `"+d.target("aws-up")+"` made,", streams, seconds)
	})
}

// attach follows a soak that was cut off to its verdict, for as long as the hosts live.
func (d *deployment) attach(ctx context.Context, program, testID string, args []string) error {
	return d.drive(ctx, program, args, -aroundASoak, func(_ outputs, via string) ([]string, error) {
		return []string{"attach", testID, "--backend-via", via}, nil
	})
}

// drive runs soak with what command has, and args after it, through a tunnel to the stack that is open for so long.
func (d *deployment) drive(ctx context.Context, program string, args []string, length time.Duration, command func(out outputs, via string) ([]string, error)) error {
	out, c, err := d.connected(ctx)
	if err != nil {
		return err
	}
	if out.Kubeconfig == "" {
		return fmt.Errorf("there are no runners (runner_node_count is 0): soak %s from the laptop_cidrs, or set it and `make aws-up` again", out.PublicURL)
	}
	values, err := c.readyValues(ctx, out)
	if err != nil {
		return err
	}
	end, err := c.endOf(ctx, out)
	if err != nil {
		return err
	}
	if err := outlives(end, time.Now(), length); err != nil {
		return err
	}
	if valid := c.credentialsFor(ctx, time.Now(), length); valid.state == "FAIL" {
		return fmt.Errorf("%s %s", valid.what, valid.sentence)
	} else if valid.state == "note" {
		fmt.Fprintf(os.Stderr, "warning: %s %s\n", valid.what, valid.sentence)
	}
	if _, err := command(out, ""); err != nil {
		return err
	}
	tell := func(news string) { fmt.Fprintln(os.Stderr, news) }
	t, err := openTunnel(ctx, out, stackEnd, 0, tell)
	if err != nil {
		return err
	}
	defer t.close()
	api, err := openTunnel(ctx, out, clusterEnd, 0, tell)
	if err != nil {
		return err
	}
	defer api.close()
	kubeconfig, err := filepath.Abs(d.kubeconfig())
	if err != nil {
		return err
	}
	// The certificate of the cluster has this address.
	text := strings.ReplaceAll(values[out.Kubeconfig], "127.0.0.1:6443", api.address)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		return err
	}
	env, err := out.environment(values[out.Secrets], kubeconfig, t.address)
	if err != nil {
		return fmt.Errorf("the parameter %s: %w", out.Secrets, err)
	}
	flags, err := command(out, t.address)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, append(flags, args...)...) //nolint:gosec // G204: starts soak without a shell
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), env...)
	// Ctrl-C, or the end of the terminal, reaches the program from there; it stops in order, and is waited for. A SIGTERM does
	// not. A second SIGINT would have it kill all, a SIGHUP after another signal changes nothing; under nohup it is ignored.
	cmd.Cancel = func() error {
		if signal.Ignored(syscall.SIGHUP) {
			return cmd.Process.Signal(os.Interrupt)
		}
		return cmd.Process.Signal(syscall.SIGHUP)
	}
	cmd.WaitDelay = 10 * time.Minute
	err = cmd.Run()
	run := latestRun(args)
	fmt.Fprintf(os.Stderr, "\nAll hosts are still there, and end themselves at %s. Now: %s\n"+
		"An interrupted soak continues there: bin/soak-aws attach %s\n"+
		"Its shards can be judged again at any time: bin/soak merge '%s'\n", clock(end), d.target("aws-down"), run, out.shardsOf(run))
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		return exitError(exit.ExitCode())
	}
	return err
}

// flags are those of `soak run` that follow from where the hosts are and what they are set up for.
// This machine reaches the stack at the address via; the runners go by the private one. What comes after them wins.
func (o outputs) flags(via string) []string {
	return []string{
		"run", "--on", "k8s", "--overlay", "k3s",
		"--shards", "s3://" + o.Bucket + "/shards?region=" + url.QueryEscape(o.Region),
		"--backend-url", o.BackendURL, "--backend-via", via,
		"--connections", strconv.Itoa(o.Connections), "--noop-interval", strconv.FormatFloat(o.Interval, 'g', -1, 64),
	}
}

// latestRun returns the name of the last run among the results.
func latestRun(args []string) string {
	folder, _ := valueOf("--out", args)
	link, err := os.Readlink(filepath.Join(cmp.Or(folder, "results"), "latest"))
	if err != nil {
		return "TESTID"
	}
	return filepath.Base(link)
}

// readyValues returns the secrets. It is an error if a host is not set up.
func (c *cloud) readyValues(ctx context.Context, out outputs) (map[string]string, error) {
	names := slices.Sorted(maps.Keys(out.Statuses))
	values, err := c.parameters(ctx, append([]string{out.Secrets, out.Kubeconfig}, names...)...)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if s := setupOf(values[name], out.Statuses[name]); s.state != setupReady {
			return nil, fmt.Errorf("not all hosts are set up: the state of %s (%s) is %s; `make aws-up` waits for them, `bin/soak-aws logs` shows more", s.host, name, s.state)
		}
	}
	if server := out.Instances["runner-1"]; !strings.HasPrefix(values[out.Kubeconfig], "# "+server+"\n") {
		return nil, fmt.Errorf("the kubeconfig in %s is not of the host %s; `make aws-up` waits for it", out.Kubeconfig, server)
	}
	return values, nil
}

// environment has what soak must not be told by flags, which every user of this machine sees: the
// secrets, which come as lines of NAME=VALUE; and what the person at the terminal may have set there.
func (o outputs) environment(secrets, kubeconfig, via string) ([]string, error) {
	values := map[string]string{}
	for line := range strings.Lines(strings.TrimSpace(secrets)) {
		name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if !ok {
			return nil, errors.New("it holds a line that is not NAME=VALUE")
		}
		values[name] = value
	}
	prometheus := url.URL{Scheme: "http", User: url.UserPassword(prometheusUser, values["PROMETHEUS_PASSWORD"]), Host: via, Path: "/prometheus/"}
	env := []string{"KUBECONFIG=" + kubeconfig, "AWS_REGION=" + o.Region, "BACKEND_TOKEN=" + values["BACKEND_TOKEN"], "PROMETHEUS_URL=" + prometheus.String()}
	if _, chosen := os.LookupEnv(remoteWrite + "SERVER_URL"); !chosen {
		env = append(env, remoteWrite+"SERVER_URL="+o.BackendURL+"/prometheus/api/v1/write",
			remoteWrite+"USERNAME="+prometheusUser, remoteWrite+"PASSWORD="+values["PROMETHEUS_PASSWORD"])
	}
	// The stack's host is on the other side of the network that is soaked: one in the runners' cluster would tell nothing of it.
	if _, chosen := os.LookupEnv("CONTROL_URL"); !chosen {
		env = append(env, "CONTROL_URL="+o.ControlURL)
	}
	return env, nil
}

// remoteWrite begins k6's variables for the Prometheus that the runners write metrics to: that of the stack, by its private
// address, unless the person at the terminal has named another one, or none.
const remoteWrite = "K6_PROMETHEUS_RW_"

// prometheusUser is who nginx lets through to the stack's Prometheus.
const prometheusUser = "prometheus"
