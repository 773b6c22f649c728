package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/sse-soak/sse-soak/test/services"
)

type load struct {
	Connections int     `json:"connections"`
	Topics      int     `json:"topics"`
	Rate        float64 `json:"publish_rate"` // messages per second, all topics together
	Seconds     int     `json:"seconds"`
	Runners     int     `json:"runners"`
}

// interval returns the seconds between two messages of one stream, or between two noops of the backend.
func (l load) interval() float64 { return float64(l.Topics) / l.Rate }

// A servicesBench soaks services, or runs another suite on them.
type servicesBench struct {
	*options
	Suite string `json:"suite,omitempty"` // "": the soak
	Load  load   `json:"load"`
	Rows  []row  `json:"services"`
}

func (b *servicesBench) declare(flags *flag.FlagSet) {
	flags.IntVar(&b.Load.Connections, "connections", 2000, "number of streams")
	flags.IntVar(&b.Load.Topics, "topics", 20, "topics to which the streams are assigned in turn")
	flags.Float64Var(&b.Load.Rate, "publish-rate", 20, "messages per second, all topics together")
	flags.IntVar(&b.Load.Seconds, "seconds", 300, "duration per service in seconds")
	flags.IntVar(&b.Load.Runners, "runners", 2, "number of k6 processes")
	flags.StringVar(&b.Suite, "suite", "", "suite that runs on each service, such as resume (empty: the soak)")
}

func (b *servicesBench) names() (standard, extra []string) {
	for _, name := range services.Names() {
		extra = append(extra, name+bareSuffix)
	}
	return append(services.Names(), backend), extra
}

func (b *servicesBench) check() error {
	if l := b.Load; l.Connections < 1 || l.Topics < 1 || l.Rate <= 0 || l.Runners < 1 || l.Seconds < 15 {
		return errors.New("-connections, -topics, -publish-rate and -runners must be positive, and -seconds at least 15")
	}
	return nil
}

func (b *servicesBench) start(context.Context) (stop func(), err error) { return func() {}, nil }

// measure measures a service and adds its row. An error becomes a finding of the row.
func (b *servicesBench) measure(ctx context.Context, name string) string {
	r := row{Service: name, Start: time.Now().UTC().Format(time.RFC3339)}
	if err := b.fill(ctx, &r); err != nil {
		r.Findings = append(r.Findings, err.Error())
	}
	b.Rows = append(b.Rows, r)
	return r.outcome()
}

// settle is the time without load before the idle memory of a service is read.
const settle = 2 * time.Second

func (b *servicesBench) fill(ctx context.Context, r *row) error {
	c, err := b.launch(ctx, r.Service)
	if err != nil {
		return err
	}
	defer c.stop()
	r.Version, r.Settings = c.version, c.settings
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(settle):
	}
	idle, err := c.usage()
	if err != nil {
		return err
	}
	s := startSampler(c.usage)
	output, exit := b.soak(ctx, r.Service, c)
	s.stop()
	err = r.read(filepath.Join(b.out, "runs", r.Service))
	if errors.Is(err, os.ErrNotExist) {
		lines := bytes.Split(bytes.TrimSpace(output), []byte("\n"))
		return fmt.Errorf("the soak ended without a verdict (%w): %s", cmp.Or(exit, errors.New("exit status 0")), bytes.TrimSpace(lines[len(lines)-1]))
	}
	if err != nil || r.start.IsZero() {
		return err
	}
	r.Cost, err = s.costBetween(r.window())
	r.Cost.IdleBytes = idle.Memory
	return err
}

// soak runs bin/soak and returns its output. err is set unless the verdict is pass.
func (b *servicesBench) soak(ctx context.Context, name string, c *contender) (output []byte, err error) {
	runs := filepath.Join(b.out, "runs")
	if err := os.RemoveAll(filepath.Join(runs, name)); err != nil {
		return nil, err
	}
	args := []string{"run"}
	if b.Suite != "" {
		args = append(args, b.Suite)
	}
	args = append(args,
		"--service", c.service, "--backend-url", c.url, "--connections", fmt.Sprint(b.Load.Connections),
		"--seconds", fmt.Sprint(b.Load.Seconds), "--runners", fmt.Sprint(b.Load.Runners), "--out", runs, "--testid", name,
	)
	if name == backend {
		args = append(args, "--noop-interval", fmt.Sprint(b.Load.interval()))
	} else {
		args = append(args, "--topics", fmt.Sprint(b.Load.Topics), "--publish-rate", fmt.Sprint(b.Load.Rate))
	}
	cmd := exec.CommandContext(ctx, filepath.Join(b.root, "bin", "soak"), append(args, b.soakArgs...)...)
	cmd.Dir, cmd.Env = b.root, append(basicEnvironment(os.Environ()), c.env...)
	// Ctrl-C in the terminal must reach soak only through Cancel. soak then ends its runners itself.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	return cmd.CombinedOutput()
}

// basicEnvironment returns the part of an environment that contains no settings of soak.
func basicEnvironment(env []string) (out []string) {
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		switch name {
		case "PATH", "HOME", "TMPDIR", "LANG", "USER":
			out = append(out, e)
		}
	}
	return out
}
