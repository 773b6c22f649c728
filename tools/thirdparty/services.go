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
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/run/target"
	"github.com/sse-soak/sse-soak/test/services"
	"github.com/sse-soak/sse-soak/tools/page"
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
		return fmt.Errorf("-connections, -topics, -publish-rate and -runners must be positive, and -seconds at least 15, got %d, %d, %g, %d and %d",
			l.Connections, l.Topics, l.Rate, l.Runners, l.Seconds)
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

// backend is the name of the backend of this repository, which is measured like the other services.
const backend = "backend"

// bareSuffix ends the name of a service that is started without history.
const bareSuffix = "-without-history"

// traits contains the cells about each service's heartbeats, the end of its streams, and how they resume. In test/e2e,
// TestResumeOfThirdPartyServices checks how streams resume.
var traits = map[string][]string{
	"nchan":   {"event `ping`, 30 s", "no", "by `Last-Event-ID`; omits messages silently if its buffer is too short"},
	"mercure": {"comment, 40 s", "after 475 to 600 s", "by `Last-Event-ID`; reports a gap"},
	"django-eventstream": {
		"event `keep-alive`, 20 s", "no",
		"by `Last-Event-ID`; reports a gap; may repeat messages that are published during the reconnect",
	},
	"pocketbase":    {"none", "after 300 to 1800 s", "no"},
	"sse-starlette": {"comment, 15 s", "no", "no"},
	backend: {
		"none; noops are messages", "on request of the client",
		"by `Last-Event-ID`: numbers continue, noops of the outage are created again",
	},
}

// A contender is a running service, with the settings of its soak.
type contender struct {
	url, service      string
	env               []string
	version, settings string
	usage             func() (services.Usage, error)
	stop              func()
}

// launch starts a service. If the name ends with bareSuffix, the service has no history.
func (b *servicesBench) launch(ctx context.Context, name string) (*contender, error) {
	if name == backend {
		return b.startBackend(ctx)
	}
	o := services.Options{Streams: b.Load.Connections + 1000}
	service, withoutHistory := strings.CutSuffix(name, bareSuffix)
	if withoutHistory {
		o.History = -1
	}
	r, err := services.Start(ctx, service, o)
	if err != nil {
		return nil, err
	}
	return &contender{r.URL, r.Service, r.Env, r.Version, r.Settings, r.Usage, r.Stop}, nil
}

// startBackend starts the backend without nginx, because the other services have no proxy.
func (b *servicesBench) startBackend(ctx context.Context) (*contender, error) {
	logs := filepath.Join(b.out, backend+"-log")
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return nil, err
	}
	t, err := target.StartLocal(ctx, target.LocalConfig{
		Backend: filepath.Join(b.root, "bin", "backend"), Connections: b.Load.Connections, LogDir: logs, NoNginx: true,
		NoopInterval: time.Duration(b.Load.interval() * float64(time.Second)),
	})
	if err != nil {
		return nil, err
	}
	return &contender{
		url: t.URL, service: "noop", env: []string{"BACKEND_TOKEN=" + t.Token},
		version: "of this commit, " + runtime.Version(), settings: fmt.Sprintf("a noop every %g s on every stream, no topics, no publisher", b.Load.interval()),
		usage: func() (services.Usage, error) { return services.UsageOf(backend, t.Local.BackendPIDs()) },
		stop:  func() { t.Local.Stop(context.WithoutCancel(ctx)) },
	}, nil
}

// sampleInterval is the time between two samples. It is short compared with a run, and long compared with the few
// milliseconds that reading the memory of a large process takes.
const sampleInterval = time.Second

// A sample is the usage of a service and of the machine at one moment.
type sample struct {
	at time.Time
	services.Usage
	load float64 // load average of the machine in the last minute
}

// A sampler samples the usage of a service until stop is called.
type sampler struct {
	samples   []sample
	lastError error  // the error of the last failed sample, for example after a crash of the service
	stop      func() // must be called before the samples are read
}

func startSampler(usage func() (services.Usage, error)) *sampler {
	ctx, cancel := context.WithCancel(context.Background())
	s := &sampler{}
	var done sync.WaitGroup
	s.stop = func() { cancel(); done.Wait() }
	done.Go(func() {
		tick := time.NewTicker(sampleInterval)
		defer tick.Stop()
		for ctx.Err() == nil {
			if u, err := usage(); err != nil {
				s.lastError = err
			} else {
				s.samples = append(s.samples, sample{time.Now(), u, page.LoadAverage()})
			}
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	})
	return s
}

// A Cost is the usage of a service in a window of time in which its streams were open.
type Cost struct {
	IdleBytes   uint64  `json:"idle_bytes"`   // memory before the first stream
	MedianBytes uint64  `json:"median_bytes"` // median of the memory in the window
	MaxBytes    uint64  `json:"most_bytes"`   // maximum of the memory in the window
	CPUSeconds  float64 `json:"cpu_seconds"`  // CPU time in the window
	WindowS     float64 `json:"window_s"`     // duration of the window in seconds
	Load        float64 `json:"load"`         // mean load average of the machine
}

// costBetween returns the cost of a window of time, without IdleBytes. It returns an error for fewer than two samples.
func (s *sampler) costBetween(from, to time.Time) (c Cost, err error) {
	var window []sample
	for _, p := range s.samples {
		if !p.at.Before(from) && !p.at.After(to) {
			window = append(window, p)
		}
	}
	if len(window) < 2 {
		err := fmt.Errorf("measure the cost: only %s in %.0f s", format.Count(len(window), "sample"), to.Sub(from).Seconds())
		if s.lastError != nil {
			err = fmt.Errorf("%w: %w", err, s.lastError)
		}
		return c, err
	}
	var memory []uint64
	for _, p := range window {
		memory = append(memory, p.Memory)
		c.Load += p.load
	}
	c.Load /= float64(len(window))
	slices.Sort(memory)
	first, last := window[0], window[len(window)-1]
	c.MedianBytes, c.MaxBytes = memory[len(memory)/2], memory[len(memory)-1]
	c.CPUSeconds, c.WindowS = last.CPU-first.CPU, last.at.Sub(first.at).Seconds()
	return c, nil
}
