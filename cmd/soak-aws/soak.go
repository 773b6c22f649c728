package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
)

// soakFlags has the flags of `soak run` that soak-aws needs.
type soakFlags struct {
	streams

	backendURL, out string
	length          time.Duration
}

func (d *deployment) soakSite(ctx context.Context, args []string) (s site, f soakFlags, err error) {
	flags := pflag.NewFlagSet("soak run", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.IntVar(&f.Connections, "connections", 0, "")
	flags.Float64Var(&f.Interval, "noop-interval", 0, "")
	flags.StringVar(&f.backendURL, "backend-url", "", "")
	flags.StringVar(&f.out, "out", "results", "")
	seconds := flags.Float64("seconds", defaultLength.Seconds(), "")
	if err = flags.Parse(args); err != nil {
		return s, f, err
	}
	if f.backendURL != "" {
		return s, f, fmt.Errorf("--backend-url cannot be used with soak-aws, which soaks the backend of the stack; "+
			"use `bin/soak run --on k8s --backend-url %s` (docs/distributed.md)", f.backendURL)
	}
	f.length = time.Duration(*seconds * float64(time.Second))
	s, err = d.appliedSite(ctx)
	return s, f, err
}

// soak runs `soak run --on k8s` with runners on the hosts of the deployment.
func (d *deployment) soak(ctx context.Context, args []string) error {
	s, f, err := d.soakSite(ctx, args)
	if err != nil {
		return err
	}
	if err := f.match(s.settings.streams, "the stack of `"+d.makeCommand("aws-up")+"`"); err != nil {
		return err
	}
	command := []string{
		"run", "--on", "k8s", "--overlay", "k3s", "--shards", s.location("shards"), "--backend-url", s.output.BackendURL,
		"--connections", strconv.Itoa(s.settings.Connections), "--noop-interval", strconv.FormatFloat(s.settings.Interval, 'g', -1, 64),
	}
	return s.runSoak(ctx, f, append(command, args...))
}

func (d *deployment) attach(ctx context.Context, args []string) error {
	s, f, err := d.soakSite(ctx, args)
	if err != nil {
		return err
	}
	f.length = -soakOverhead // the hosts and the credentials only have to be valid now
	return s.runSoak(ctx, f, append([]string{"attach"}, args...))
}

// runSoak runs soak with tunnels to the stack and to the cluster of the runners.
func (s site) runSoak(ctx context.Context, f soakFlags, args []string) error {
	end, err := s.checkLifetime(ctx, f.length)
	if err != nil {
		return err
	}
	stack, err := openTunnel(ctx, s.output, "stack", stackPort, 0)
	if err != nil {
		return err
	}
	defer stack.close()
	cluster, err := openTunnel(ctx, s.output, "runner-1", clusterPort, 0)
	if err != nil {
		return err
	}
	defer cluster.close()
	kubeconfig, err := os.CreateTemp("", "soak-aws-")
	if err != nil {
		return err
	}
	defer os.Remove(kubeconfig.Name())
	// The certificate of the cluster is valid for 127.0.0.1.
	if _, err := kubeconfig.WriteString(strings.ReplaceAll(s.values[s.output.Kubeconfig], "127.0.0.1:6443", cluster.address)); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, s.program, append(args, "--backend-via", stack.address)...) // #nosec G204 -- starts soak without a shell
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = slices.Concat(os.Environ(), s.environment(stack.address), []string{"KUBECONFIG=" + kubeconfig.Name()})
	// The terminal also sends SIGINT and SIGHUP to soak, which then stops gracefully. A SIGTERM may reach only
	// soak-aws, so Cancel also sends a signal. A second SIGINT would kill the run, but a SIGHUP after another signal
	// has no effect. Under nohup, soak ignores SIGHUP and needs no terminal. A process group of its own then ensures
	// that soak receives only the SIGINT of Cancel.
	stop := syscall.SIGHUP
	if signal.Ignored(syscall.SIGHUP) {
		stop, cmd.SysProcAttr = syscall.SIGINT, &syscall.SysProcAttr{Setpgid: true}
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(stop) }
	cmd.WaitDelay = 10 * time.Minute
	err = cmd.Run()
	latest, _ := os.Readlink(filepath.Join(f.out, "latest"))
	run := filepath.Base(cmp.Or(latest, "TESTID"))
	fmt.Fprintf(os.Stderr, "\nThe hosts terminate themselves at %s. Next: %s\n"+
		"To continue an interrupted soak: %s\n"+
		"To judge its shards again: bin/soak merge '%s'\n", clock(end), s.makeCommand("aws-down"), s.soakAWS("attach "+run), s.location("shards", run))
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		return exitError(exit.ExitCode())
	}
	return err
}

// location returns the address of objects in the bucket, such as the shards of a run.
func (s site) location(elements ...string) string {
	return "s3://" + path.Join(s.output.Bucket, path.Join(elements...)) + "?region=" + url.QueryEscape(s.settings.Region)
}

// checkLifetime returns the time at which the first host terminates itself. It returns an error if there are no
// runners, or if a host is not set up. It also returns an error if a host terminates itself, or credentials in the
// environment expire, before the verdict of a soak of that length.
func (s site) checkLifetime(ctx context.Context, length time.Duration) (end time.Time, err error) {
	if s.output.Kubeconfig == "" {
		return end, fmt.Errorf("there are no runners (runner_node_count is 0); soak %s from an address in laptop_cidrs, or set runner_node_count and run `%s` again",
			s.output.PublicURL, s.makeCommand("aws-up"))
	}
	for _, name := range slices.Sorted(maps.Keys(s.output.Statuses)) {
		if state, _ := setup(s.values[name], s.output.Statuses[name]); state != setupReady {
			return end, fmt.Errorf("not all hosts are set up: the state of %s (%s) is %s; complete the setup with `%s`",
				s.output.Statuses[name], name, state, s.makeCommand("aws-up"))
		}
	}
	if end, err = s.end(ctx, length); err != nil {
		return end, err
	}
	switch state, sentence := s.aws.checkCredentials(length).result(ctx); state {
	case "FAIL":
		return end, errors.New(sentence)
	case "note":
		warn("warning: " + sentence)
	}
	return end, nil
}

// environment returns variables for soak. They contain secrets, which must not be flags, because all users of this
// machine can read flags. The user's variables for remote write and for the control group stay unchanged. via is the
// address of the tunnel to the stack ("": none).
func (s site) environment(via string) []string {
	env := append(strings.Fields(s.values[s.output.Secrets]), "AWS_REGION="+s.settings.Region)
	_, password, _ := strings.Cut(s.values[s.output.Secrets], "PROMETHEUS_PASSWORD=")
	password, _, _ = strings.Cut(password, "\n")
	const user = "prometheus" // in the configuration of nginx
	prometheus := url.URL{Scheme: "http", User: url.UserPassword(user, password), Host: via, Path: "/prometheus/"}
	env = append(env, "PROMETHEUS_URL="+prometheus.String())
	if _, isSet := os.LookupEnv("K6_PROMETHEUS_RW_SERVER_URL"); !isSet {
		env = append(env, "K6_PROMETHEUS_RW_SERVER_URL="+s.output.BackendURL+"/prometheus/api/v1/write",
			"K6_PROMETHEUS_RW_USERNAME="+user, "K6_PROMETHEUS_RW_PASSWORD="+password)
	}
	// The streams to a reference in the runners' cluster would not use the network between runners and stack.
	if _, isSet := os.LookupEnv("CONTROL_URL"); !isSet {
		env = append(env, "CONTROL_URL="+s.output.ControlURL)
	}
	return env
}

const (
	// scheduleDelay is the time from the planned end of a host until a schedule terminates it (modules/host).
	scheduleDelay = 15 * time.Minute
	// maxLifetime is the maximum time from now until the end of hosts. Hosts reject a later end.
	maxLifetime = 24 * time.Hour
	// soakOverhead is the time that a soak may need in addition to --seconds, to start runners and to read shards.
	soakOverhead = 10 * time.Minute
	// defaultLength is the default of `soak run --seconds`.
	defaultLength = time.Hour
)

func clock(t time.Time) string { return t.UTC().Format(time.TimeOnly + " MST") }

// end returns the time at which the first host terminates itself. It returns an error if the hosts have terminated, or
// if a soak of that length ends later.
func (s site) end(ctx context.Context, length time.Duration) (end time.Time, err error) {
	hosts, err := s.aws.hosts(ctx, tagFilter("Run", s.settings.Name))
	if err != nil {
		return end, err
	}
	for _, h := range hosts {
		if hostEnd := h.Launch.Add(time.Duration(s.settings.TTLMinutes) * time.Minute); end.IsZero() || hostEnd.Before(end) {
			end = hostEnd
		}
	}
	if extendedEnd, err := time.Parse(time.RFC3339, s.values[s.output.EndParameter]); err == nil && extendedEnd.After(end) && len(hosts) > 0 {
		end = extendedEnd
	}
	remaining := time.Until(end)
	switch shortfall := length + soakOverhead - remaining; {
	case remaining <= 0:
		return end, fmt.Errorf("the hosts have terminated; run `%s` for new ones", s.makeCommand("aws-up"))
	case shortfall > 0:
		return end, fmt.Errorf("the hosts end at %s, in %v, but the run takes %v, plus up to %v before and after it; "+
			"extend them with `%s`, or lower SECONDS",
			clock(end), remaining.Round(time.Second), length, soakOverhead, s.soakAWS(fmt.Sprintf("extend --minutes %d", int(math.Ceil(shortfall.Minutes())))))
	}
	return end, nil
}

// checkCredentials returns a check that the credentials last until the verdict of a soak. AWS tools renew the
// credentials of a profile until its session ends, at an unknown time. They do not renew credentials in the
// environment.
func (c *cloud) checkCredentials(length time.Duration) check {
	return func(ctx context.Context) (string, error) {
		var credentials struct{ Expiration time.Time }
		// Version 1 of the AWS CLI lacks this command.
		if c.call(ctx, &credentials, "configure", "export-credentials", "--format", "process") != nil {
			credentials.Expiration, _ = time.Parse(time.RFC3339, os.Getenv("AWS_CREDENTIAL_EXPIRATION"))
		}
		end, inEnvironment := credentials.Expiration, os.Getenv("AWS_SESSION_TOKEN") != ""
		run := fmt.Sprintf("a run of %v", length)
		if length < 0 {
			run = "the run" // attach does not know the length of the run
		}
		switch {
		case end.IsZero() && inEnvironment:
			return "", fmt.Errorf("the expiry of AWS_SESSION_TOKEN is unknown, but %s needs the token at its end to read the shards", run)
		case end.IsZero() || end.After(time.Now().Add(length+soakOverhead)):
			return "valid until after " + run, nil
		case inEnvironment:
			return "", refuse("the credentials in the environment expire at %s, before the verdict of %s; "+
				"log in for longer, or use a profile that renews them", clock(end), run)
		}
		return "", fmt.Errorf("the credentials expire at %s, before the verdict of %s, "+
			"unless the session of the profile lasts longer and renews them", clock(end), run)
	}
}

// extend postpones the end of all hosts. It changes the schedules before the parameter that the hosts read. A failure
// in between therefore leaves the end unchanged.
func (d *deployment) extend(ctx context.Context, minutes int) error {
	if minutes < 1 {
		return refuse("--minutes must be positive, got %d; to end the hosts, run `%s`", minutes, d.makeCommand("aws-down"))
	}
	s, err := d.appliedSite(ctx)
	if err != nil {
		return err
	}
	end, err := s.end(ctx, -soakOverhead)
	if err != nil {
		return err
	}
	later := end.Add(time.Duration(minutes) * time.Minute).UTC().Truncate(time.Second)
	if remaining := time.Until(later); remaining > maxLifetime {
		return fmt.Errorf("the time until the end of the hosts must be at most %v, got %v; lower --minutes", maxLifetime, remaining.Round(time.Minute))
	}
	if err := s.aws.moveSchedules(ctx, s.settings.Name, later.Add(scheduleDelay)); err != nil {
		return fmt.Errorf("the hosts still end at %s: move the schedules that end them: %w", clock(end), err)
	}
	err = s.aws.call(ctx, nil, "ssm", "put-parameter", "--overwrite",
		"--name", s.output.EndParameter, "--value", later.Format(time.RFC3339))
	if err != nil {
		return fmt.Errorf("the hosts still end at %s: store the later end: %w", clock(end), err)
	}
	fmt.Printf("all hosts end at %s, in %v; a schedule terminates any hosts that are still running %v later\n",
		clock(later), time.Until(later).Round(time.Minute), scheduleDelay)
	return nil
}

// moveSchedules sets the time of each schedule in a group and keeps its other properties.
func (c *cloud) moveSchedules(ctx context.Context, group string, to time.Time) error {
	var names []string
	if err := c.call(ctx, &names, "scheduler", "list-schedules", "--group-name", group, "--query", "Schedules[].Name"); err != nil {
		return err
	}
	if len(names) == 0 {
		return fmt.Errorf("the group %s has no schedules", group)
	}
	for _, name := range names {
		var schedule map[string]any
		if err := c.call(ctx, &schedule, "scheduler", "get-schedule", "--group-name", group, "--name", name); err != nil {
			return err
		}
		for _, readOnly := range []string{"Arn", "CreationDate", "LastModificationDate"} {
			delete(schedule, readOnly)
		}
		schedule["ScheduleExpression"] = "at(" + to.UTC().Format("2006-01-02T15:04:05") + ")"
		text, err := json.Marshal(schedule)
		if err != nil {
			return err
		}
		if err := c.call(ctx, nil, "scheduler", "update-schedule", "--cli-input-json", string(text)); err != nil {
			return err
		}
	}
	return nil
}
