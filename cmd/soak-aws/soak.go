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

// A soakFlags has the flags of `soak run` that soak-aws needs.
type soakFlags struct {
	streams

	backendURL, out string
	length          time.Duration
}

// soakSite returns the deployment as it exists, and the flags of `soak run` that soak-aws needs.
func (d *deployment) soakSite(ctx context.Context, args []string) (s site, f soakFlags, err error) {
	flags := pflag.NewFlagSet("soak run", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.IntVar(&f.connections, "connections", 0, "")
	flags.Float64Var(&f.interval, "noop-interval", 0, "")
	flags.StringVar(&f.backendURL, "backend-url", "", "")
	flags.StringVar(&f.out, "out", "results", "")
	seconds := flags.Float64("seconds", defaultLength.Seconds(), "")
	if err = flags.Parse(args); err != nil {
		return s, f, err
	}
	if f.backendURL != "" {
		return s, f, fmt.Errorf("soak-aws soaks the stack's backend, with its token, its ledger and its CPU, and --backend-url names another service: "+
			"`bin/soak run --on k8s --backend-url %s` soaks that (docs/distributed.md)", f.backendURL)
	}
	f.length = time.Duration(*seconds * float64(time.Second))
	s, err = d.appliedSite(ctx)
	return s, f, err
}

// soak runs `soak run --on k8s` on the hosts of the deployment. Its exit code is the verdict.
func (d *deployment) soak(ctx context.Context, args []string) error {
	s, f, err := d.soakSite(ctx, args)
	if err != nil {
		return err
	}
	if err := f.match(s.settings, "the stack, which `"+d.target("aws-up")+"` made,"); err != nil {
		return err
	}
	command := []string{
		"run", "--on", "k8s", "--overlay", "k3s", "--shards", s.location("shards"), "--backend-url", s.output.BackendURL,
		"--connections", strconv.Itoa(s.settings.Connections), "--noop-interval", strconv.FormatFloat(s.settings.Interval, 'g', -1, 64),
	}
	return s.runSoak(ctx, f, append(command, args...))
}

// attach follows an interrupted soak to its verdict, for as long as the hosts live.
func (d *deployment) attach(ctx context.Context, args []string) error {
	s, f, err := d.soakSite(ctx, args)
	if err != nil {
		return err
	}
	f.length = -soakOverhead
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
	// The certificate of the cluster has this address.
	if _, err := kubeconfig.WriteString(strings.ReplaceAll(s.values[s.output.Kubeconfig], "127.0.0.1:6443", cluster.address)); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, s.program, append(args, "--backend-via", stack.address)...) // #nosec G204 -- starts soak without a shell
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = slices.Concat(os.Environ(), s.environment(stack.address), []string{"KUBECONFIG=" + kubeconfig.Name()})
	// The terminal sends Ctrl-C and its own end to the program too, which then stops in order. It does not send a SIGTERM. A
	// second SIGINT would kill the run; a SIGHUP after another signal has no effect, but nohup ignores it.
	cmd.Cancel = func() error {
		if signal.Ignored(syscall.SIGHUP) {
			return cmd.Process.Signal(os.Interrupt)
		}
		return cmd.Process.Signal(syscall.SIGHUP)
	}
	cmd.WaitDelay = 10 * time.Minute
	err = cmd.Run()
	latest, _ := os.Readlink(filepath.Join(f.out, "latest"))
	run := filepath.Base(cmp.Or(latest, "TESTID"))
	fmt.Fprintf(os.Stderr, "\nAll hosts are still there, and end themselves at %s. Now: %s\n"+
		"To continue an interrupted soak: bin/soak-aws attach %s\n"+
		"To judge its shards again: bin/soak merge '%s'\n", clock(end), s.target("aws-down"), run, s.location("shards", run))
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

// checkLifetime returns when the hosts end, and an error if they cannot run a soak to its verdict.
func (s site) checkLifetime(ctx context.Context, length time.Duration) (end time.Time, err error) {
	if s.output.Kubeconfig == "" {
		return end, fmt.Errorf("there are no runners (runner_node_count is 0): soak %s from the laptop_cidrs, or set it and `make aws-up` again",
			s.output.PublicURL)
	}
	for _, name := range slices.Sorted(maps.Keys(s.output.Statuses)) {
		if state, _ := setup(s.values[name], s.output.Statuses[name]); state != setupReady {
			return end, fmt.Errorf("not all hosts are set up: the state of %s (%s) is %s; `make aws-up` waits for them",
				s.output.Statuses[name], name, state)
		}
	}
	if end, err = s.end(ctx, length); err != nil {
		return end, err
	}
	switch state, sentence := s.aws.checkCredentials(length).result(ctx); state {
	case "FAIL":
		return end, errors.New(sentence)
	case "note":
		warn("warning: the credentials: " + sentence)
	}
	return end, nil
}

// environment returns the variables of soak that must not be flags, because all users of this machine can see flags: the
// secrets, as lines NAME=VALUE of the stack's host. The user may have set another Prometheus or another reference.
func (s site) environment(via string) []string {
	env := append(strings.Fields(s.values[s.output.Secrets]), "AWS_REGION="+s.settings.Region)
	_, password, _ := strings.Cut(s.values[s.output.Secrets], "PROMETHEUS_PASSWORD=")
	password, _, _ = strings.Cut(password, "\n")
	const user = "prometheus" // of nginx
	prometheus := url.URL{Scheme: "http", User: url.UserPassword(user, password), Host: via, Path: "/prometheus/"}
	env = append(env, "PROMETHEUS_URL="+prometheus.String())
	if _, chosen := os.LookupEnv("K6_PROMETHEUS_RW_SERVER_URL"); !chosen {
		env = append(env, "K6_PROMETHEUS_RW_SERVER_URL="+s.output.BackendURL+"/prometheus/api/v1/write",
			"K6_PROMETHEUS_RW_USERNAME="+user, "K6_PROMETHEUS_RW_PASSWORD="+password)
	}
	// A reference in the runners' cluster would show nothing of the network between runners and stack.
	if _, chosen := os.LookupEnv("CONTROL_URL"); !chosen {
		env = append(env, "CONTROL_URL="+s.output.ControlURL)
	}
	return env
}

const (
	// scheduleDelay is the time after the end of a host at which a schedule ends it from outside (modules/host).
	scheduleDelay = 15 * time.Minute
	// maxLifetime is the maximum extension of the end of hosts, which reject more.
	maxLifetime = 24 * time.Hour
	// soakOverhead is the time of a soak in addition to its seconds: starting runners and reading shards.
	soakOverhead = 10 * time.Minute
	// defaultLength is the default of `soak run --seconds`.
	defaultLength = time.Hour
)

func clock(t time.Time) string { return t.UTC().Format(time.TimeOnly + " MST") }

// end returns when the first host ends itself. It is an error if that is before the end of a soak.
func (s site) end(ctx context.Context, length time.Duration) (end time.Time, err error) {
	hosts, err := s.aws.hosts(ctx, tagged("Run", s.settings.Name))
	if err != nil {
		return end, err
	}
	for _, h := range hosts {
		if hostEnd := h.Launch.Add(time.Duration(s.settings.TTLMinutes) * time.Minute); end.IsZero() || hostEnd.Before(end) {
			end = hostEnd
		}
	}
	if moved, err := time.Parse(time.RFC3339, s.values[s.output.EndParameter]); err == nil && moved.After(end) && len(hosts) > 0 {
		end = moved
	}
	left := time.Until(end)
	switch missing := length + soakOverhead - left; {
	case left <= 0:
		return end, errors.New("the hosts have terminated; run `make aws-up` for new ones")
	case missing > 0:
		return end, fmt.Errorf("the hosts end at %s, in %v, but the run takes %v and up to %v before and after it; "+
			"extend them with `bin/soak-aws extend --minutes %d`, or lower SECONDS",
			clock(end), left.Round(time.Second), length, soakOverhead, int(math.Ceil(missing.Minutes())))
	}
	return end, nil
}

// checkCredentials checks that the credentials are valid until a soak is judged. The AWS tools renew the credentials of a profile
// during its session, whose end is unknown; those in the environment are not.
func (c *cloud) checkCredentials(length time.Duration) check {
	return func(ctx context.Context) (string, error) {
		var exported struct{ Expiration time.Time }
		if c.call(ctx, &exported, "configure", "export-credentials", "--format", "process") != nil { // version 1 cannot
			exported.Expiration, _ = time.Parse(time.RFC3339, os.Getenv("AWS_CREDENTIAL_EXPIRATION"))
		}
		end, fixed := exported.Expiration, os.Getenv("AWS_SESSION_TOKEN") != ""
		switch {
		case end.IsZero() && fixed:
			return "", fmt.Errorf("the expiry of AWS_SESSION_TOKEN is unknown; a run of %v needs it at its end to read the shards", length)
		case end.IsZero() || end.After(time.Now().Add(length+soakOverhead)):
			return fmt.Sprintf("valid until after a run of %v", length), nil
		case fixed:
			return "", refuse("the credentials in the environment expire at %s, before the verdict of a run of %v; "+
				"log in for longer, or use a profile that renews them", clock(end), length)
		}
		return "", fmt.Errorf("they expire at %s, before the verdict of a run of %v; "+
			"its shards can be read only if the profile's session lives longer", clock(end), length)
	}
}

// extend moves the end of all hosts, without creating new ones. It first changes the schedules outside, then those of
// the hosts: a failure in between leaves the end unchanged.
func (d *deployment) extend(ctx context.Context, minutes int) error {
	if minutes < 1 {
		return refuse("--minutes must be positive, got %d; `make aws-down` ends the hosts", minutes)
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
	if left := time.Until(later); left > maxLifetime {
		return fmt.Errorf("the hosts would end in %v: an end may be %v ahead at most", left.Round(time.Minute), maxLifetime)
	}
	if err := s.aws.moveSchedules(ctx, s.settings.Name, later.Add(scheduleDelay)); err != nil {
		return fmt.Errorf("the hosts still end at %s: move the schedules that end them: %w", clock(end), err)
	}
	err = s.aws.call(ctx, nil, "ssm", "put-parameter", "--overwrite",
		"--name", s.output.EndParameter, "--value", later.Format(time.RFC3339))
	if err != nil {
		return fmt.Errorf("the hosts still end at %s: store the later end: %w", clock(end), err)
	}
	fmt.Printf("all hosts end at %s, in %v; a schedule ends them from outside %v later\n",
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
		for _, answered := range []string{"Arn", "CreationDate", "LastModificationDate"} {
			delete(schedule, answered)
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
