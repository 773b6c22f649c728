package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// settle is how long a service is left alone before its memory is read that counts as idle.
const settle = 2 * time.Second

// measure soaks one service, alone. What goes wrong becomes a finding of its row.
func (b *bench) measure(ctx context.Context, name string) (r row) {
	r = row{Service: name, Began: time.Now().UTC().Format(time.RFC3339)}
	c, err := b.start(ctx, name)
	if err != nil {
		return r.broke(err)
	}
	defer c.stop()
	r.Version, r.Settings = c.version, c.settings
	if r.Traits, err = b.traits(ctx, name, c); err != nil {
		return r.broke(err)
	}
	select {
	case <-ctx.Done():
		return r.broke(ctx.Err())
	case <-time.After(settle):
	}
	idle, err := c.usage()
	if err != nil {
		return r.broke(err)
	}
	s := watch(c.usage)
	said, ended := b.soak(ctx, name, c)
	s.stop()
	r.outcomeOf(filepath.Join(b.out, "runs", name), said, ended)
	if r.verdict == nil || r.verdict.StartedUnix == 0 {
		return r
	}
	from, to := window(r.verdict)
	cost, err := s.between(from, to)
	if err != nil {
		return r.broke(err)
	}
	cost.IdleBytes = idle.Memory
	r.charge(cost)
	return r
}

// soak runs the soak and answers what it said. Its exit code says no more than the verdict that it leaves.
func (b *bench) soak(ctx context.Context, name string, c *contender) (said []byte, err error) {
	runs := filepath.Join(b.out, "runs")
	if err := os.RemoveAll(filepath.Join(runs, name)); err != nil {
		return nil, err
	}
	args := []string{"run"}
	if b.suite != "" {
		args = append(args, b.suite)
	}
	args = append(args,
		"--service", c.service, "--backend-url", c.url, "--connections", fmt.Sprint(b.Connections),
		"--seconds", fmt.Sprint(b.Seconds), "--runners", fmt.Sprint(b.Runners), "--out", runs, "--testid", name,
	)
	if name == own {
		args = append(args, "--noop-interval", fmt.Sprint(b.interval()))
	} else {
		args = append(args, "--topics", fmt.Sprint(b.Topics), "--publish-rate", fmt.Sprint(b.Rate))
	}
	cmd := exec.CommandContext(ctx, filepath.Join(b.root, "bin", "soak"), append(args, b.more...)...)
	cmd.Dir, cmd.Env = b.root, append(clean(os.Environ()), c.env...)
	// soak itself ends its runners in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	return cmd.CombinedOutput()
}

// clean leaves out the settings of a soak: all that counts here are flags.
func clean(env []string) (out []string) {
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		switch name {
		case "PATH", "HOME", "TMPDIR", "LANG", "USER":
			out = append(out, e)
		}
	}
	return out
}

// lastLine returns the last line of the output, which has the error of soak.
func lastLine(said []byte) string {
	lines := bytes.Split(bytes.TrimSpace(said), []byte("\n"))
	return string(bytes.TrimSpace(lines[len(lines)-1]))
}
