package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"github.com/sse-soak/sse-soak/internal/model"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/nginx"
	"github.com/sse-soak/sse-soak/test/address"
	"github.com/sse-soak/sse-soak/test/fakeservice"
	"github.com/sse-soak/sse-soak/test/reverse"
)

// A run is one execution of a scenario.
type run struct {
	*scenario
	root    string              // folder of the repository
	dir     string              // folder of this run
	server  *fakeservice.Server // server of the service in this process; nil: none
	service *fakeservice.Service
	hub     *hub
	feed    *feedService
	model   *model.Server
	endings []ending // early ends and suspensions of runners
	stops   []func() // functions that stop the services, in the order of the starts
	url     string   // URL of the service; "": soak starts it
}

// testid is the id of every run. Each run has its own folder.
const testid = "t"

func (r *run) execute(ctx context.Context) (*verdict.Verdict, error) {
	defer r.stop()
	if err := r.start(ctx); err != nil {
		return nil, err
	}
	soak := r.soak
	if r.Early != nil {
		soak = r.soakEarly
	}
	return soak(ctx)
}

func (r *run) expectation() *verdictExpectation {
	switch {
	case r.want != nil:
		return r.want
	case r.Finite != nil:
		return r.expectFinite()
	case r.Feed != nil:
		return r.expectFeed()
	case r.hub != nil:
		return r.expectHub(r.hub)
	case r.service == nil:
		return expectPass()
	case r.Early != nil:
		return r.expectEarly()
	}
	return expectStreams(r.scenario, r.service)
}

// lateness returns the longest delay of a message of the service in this process, or 0 without such a service.
func (r *run) lateness() time.Duration {
	if r.server == nil {
		return 0
	}
	return time.Duration(r.server.Lateness.Load())
}

func (r *run) start(ctx context.Context) error {
	if r.Service == nil && r.Hub == nil && r.Finite == nil && r.Feed == nil {
		return nil
	}
	l, err := listen()
	if err != nil {
		return err
	}
	address := l.Addr().String()
	switch {
	case r.Feed != nil:
		err = r.startFeed(l)
	case r.Finite != nil:
		err = r.startFinite(l)
	case r.Hub != nil:
		r.hub = startHub(r.scenario, l)
		r.registerServer(&r.hub.Server)
	default:
		address, err = r.startStreams(ctx, l)
	}
	r.url = "http://" + address
	return err
}

func (r *run) registerServer(s *fakeservice.Server) {
	r.server, r.stops = s, append(r.stops, s.Stop)
}

// startStreams starts a service in this process, behind nginx and a proxy with faults if the scenario has them.
func (r *run) startStreams(ctx context.Context, l net.Listener) (address string, err error) {
	listeners, address := []net.Listener{l}, l.Addr().String()
	if r.Service.Nginx {
		socket := filepath.Join(r.dir, "s.sock")
		u, err := net.Listen("unix", socket)
		if err != nil {
			return "", err
		}
		r.stops = append(r.stops, func() { _ = u.Close() })
		front, stop, err := startNginx(ctx, r.dir, socket, &r.Plan)
		if err != nil {
			return "", err
		}
		address, listeners, r.stops = front, append(listeners, u), append(r.stops, stop)
	}
	r.service = fakeservice.StartService(*r.Service, r.Strike, listeners...)
	r.registerServer(&r.service.Server)
	if r.Proxy.Action != "" {
		proxy, err := fakeservice.StartProxy(r.Proxy, address, r.service)
		if err != nil {
			return "", err
		}
		r.stops, address = append(r.stops, proxy.Stop), strings.TrimPrefix(proxy.URL, "http://")
	}
	return address, nil
}

func (r *run) stop() {
	for _, stop := range slices.Backward(r.stops) {
		stop()
	}
	r.stops = nil
}

// maxOverrun is the time that soak may run in addition to the duration of the plan.
const maxOverrun = 100 * time.Second

func (r *run) soak(ctx context.Context) (*verdict.Verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(r.Plan.Seconds)*time.Second+maxOverrun)
	defer cancel()
	args := []string{"run"}
	if r.Suite != "" {
		args = append(args, r.Suite, "--profile", "smoke")
	}
	if r.Suite == "" || r.Hub != nil {
		args = append(args, r.Plan.flags()...)
	}
	if r.Hub != nil {
		flags, err := r.describe()
		if err != nil {
			return nil, err
		}
		args = append(args, flags...)
	}
	args = append(args, "--out", filepath.Join(r.dir, "out"), "--testid", testid)
	if r.url != "" {
		args = append(args, "--backend-url", r.url)
	}
	text, err := r.exec(ctx, append(args, r.Args...)...)
	return verdictOf(err, filepath.Join(r.dir, "out", testid), text)
}

func (r *run) describe() ([]string, error) {
	path := filepath.Join(r.dir, "service.js")
	flags := []string{"--service", path, "--topics", fmt.Sprint(r.Hub.Topics), "--publish-rate", fmt.Sprint(r.Hub.Rate)}
	if r.Hub.Message != nil {
		return flags[:2], r.Hub.describe(path)
	}
	if !r.Hub.HasMarker { // undetectable losses would make the run invalid
		flags = append(flags, "--max-hidden", "1000000")
	}
	return flags, r.Hub.describe(path)
}

// command returns a command that runs bin/soak. When ctx ends, soak receives SIGINT, and SIGKILL after WaitDelay.
func (r *run) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(r.root, "bin", "soak"), args...)
	cmd.Dir = r.dir // a shard that was not delivered is kept there
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" + r.dir}
	// Ctrl-C in the terminal of the campaign must reach soak only through Cancel.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	return cmd
}

// exec runs bin/soak to its end, and disturb at the same time. It writes the output of bin/soak to soak.txt.
func (r *run) exec(ctx context.Context, args ...string) (string, error) {
	cmd := r.command(ctx, args...)
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	if err := cmd.Start(); err != nil {
		return "", err
	}
	running, stop := context.WithCancel(ctx)
	var disturbances sync.WaitGroup
	if r.disturb != nil {
		disturbances.Go(func() { r.disturb(running, r, cmd.Process.Pid) })
	}
	err := cmd.Wait()
	stop()
	disturbances.Wait()
	_ = os.WriteFile(filepath.Join(r.dir, "soak.txt"), text.Bytes(), 0o644)
	return text.String(), err
}

// verdictOf returns the verdict of a soak process that ended with err. Without verdict.json, exit code 2 is an invalid
// verdict with the output as its reasons.
func verdictOf(err error, dir, text string) (*verdict.Verdict, error) {
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		return nil, err
	}
	v := &verdict.Verdict{}
	if b, err := os.ReadFile(filepath.Join(dir, results.VerdictFile)); err == nil {
		if err := json.Unmarshal(b, v); err != nil {
			return nil, err
		}
		if want := v.Verdict.ExitCode(); want != code {
			return nil, fmt.Errorf("verdict %s must have exit code %d, got %d", v.Verdict, want, code)
		}
		return v, nil
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if code != 2 {
		return nil, fmt.Errorf("exit code %d and no verdict: %s", code, lines[len(lines)-1])
	}
	v.Verdict, v.Reasons = verdict.Invalid, lines
	v.Checks = []verdict.Check{{ID: verdict.CheckComplete}} // a run without a verdict is incomplete
	return v, nil
}

// runners returns the process ids of the runners that a soak process has started.
func runners(soak int) (pids []int) {
	all, _ := procfs.AllProcs()
	for _, p := range all {
		if s, err := p.Stat(); err == nil && s.PPID == soak { // an error: the process has ended
			if line, err := p.CmdLine(); err == nil && slices.Contains(line, "--execution-segment") {
				pids = append(pids, p.PID)
			}
		}
	}
	return pids
}

// disturbPublisher sends a signal to the publisher, the first runner of a soak, after the first published message. A
// publisher stopped by SIGSTOP continues after Strike.Wait.
func disturbPublisher(signal syscall.Signal) func(context.Context, *run, int) {
	return func(ctx context.Context, r *run, soak int) {
		if !await(ctx, func() bool { return r.hub.publishCount() > 0 }) {
			return
		}
		pids := runners(soak)
		if len(pids) == 0 {
			return
		}
		_ = syscall.Kill(slices.Min(pids), signal)
		if signal == syscall.SIGSTOP {
			time.Sleep(r.Strike.Wait)
			_ = syscall.Kill(slices.Min(pids), syscall.SIGCONT)
		}
	}
}

// listen listens on a free port of a random loopback address, so that concurrent runs do not share an address.
func listen() (net.Listener, error) {
	var octets [3]byte
	_, _ = rand.Read(octets[:]) // never fails
	return net.Listen("tcp", net.IPv4(127, 1+octets[0]%254, octets[1], 1+octets[2]%254).String()+":0")
}

// startNginx starts nginx in front of a service on a Unix socket. front is the address of nginx; dir is its folder.
func startNginx(ctx context.Context, dir, socket string, p *plan) (front string, stop func(), err error) {
	front, err = address.Free()
	if err != nil {
		return "", nil, err
	}
	var text strings.Builder
	if err := nginx.Render(&text, nginx.Config{
		Dir: dir, ErrorLog: filepath.Join(dir, "nginx.log"), Listen: front, Sockets: []string{socket}, Root: os.Geteuid() == 0, Workers: 1,
		Connections: p.Connections, NoopInterval: p.interval(),
	}); err != nil {
		return "", nil, err
	}
	stop, err = reverse.Run(ctx, dir, text.String(), "tcp", front)
	return front, stop, err
}

// pause waits for d. It returns false if ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// await waits until done returns true. It returns false if ctx ends first.
func await(ctx context.Context, done func() bool) bool {
	for !done() {
		if !pause(ctx, 50*time.Millisecond) {
			return false
		}
	}
	return true
}
