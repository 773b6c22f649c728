// Package services starts third-party SSE services for tests and tools/thirdparty, and gateways for language models.
// `make services` builds the programs that are not Debian packages into bin/services/, in versions that a go.mod,
// requirements.txt or package-lock.json pins.
package services

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"github.com/sse-soak/sse-soak/internal/host/process"
	"github.com/sse-soak/sse-soak/test/address"
)

// Options are the settings of a service. The zero value has the settings that the service's description expects.
type Options struct {
	// Heartbeat is the interval of heartbeats: at least 1 s, rounded down to seconds; 0: the interval of the
	// description. django-eventstream always uses 20 s, and PocketBase has no heartbeats.
	Heartbeat time.Duration
	// History is the number of messages that the service can replay to a client that resumes (0: unlimited, or 1000 for
	// nchan; negative: none). It applies per topic for nchan, and to all topics together for Mercure. Other services
	// ignore it.
	History int
	// Lifetime is the maximum lifetime of a stream, for Mercure and PocketBase; 0: the default of the service.
	Lifetime time.Duration
	// Tokens makes streams require a JWT that is signed with SUBSCRIBER_JWT_KEY of Instance.Env. Only Mercure supports
	// this.
	Tokens bool
	// Streams is the maximum number of streams; 0: 4000. Only nchan uses it.
	Streams int
	// Upstream is the URL of the server behind a gateway. Other services ignore it.
	Upstream string
}

// An Instance is a running service. Its methods must not be called concurrently.
type Instance struct {
	Name string
	// URL is the value of --backend-url.
	URL string
	// Service is the value of --service: a name, or the path of a module; "" for fastapi, which has no description.
	Service string
	// SubscribeToken is the value of SUBSCRIBE_TOKEN; "" if Env does not contain this variable.
	SubscribeToken string
	// Env contains the variables that a run needs, such as PUBLISH_TOKEN=….
	Env []string
	// Version contains the versions of the service and of its runtime.
	Version string
	// Settings describes the settings that determine behavior and cost.
	Settings string

	command command
	address string
	dir     string // for the configuration, the data and the log; Stop removes it
	process *process.Process
}

type definition struct {
	name    string
	service string // value of --service; a path is relative to the root of the repository; "": no description
	command func(setup) (command, error)
}

type setup struct {
	Options
	root, dir, address string
}

type command struct {
	path     string
	args     []string
	env      []string // added to PATH and HOME
	token    string   // bearer token of publishers
	key      string   // bearer token of subscribers
	runEnv   []string // variables that a run needs in its environment
	health   string   // path that returns status 200 when the service is ready; "": the service is ready when it listens
	version  string
	settings string
}

var definitions = []definition{
	{name: "nchan", service: "nchan", command: nchanCommand},
	{name: "mercure", service: "mercure", command: mercureCommand},
	djangoEventstream,
	{name: "pocketbase", service: "pocketbase", command: pocketbaseCommand},
	sseStarlette,
}

// Names returns the names of the services in the order of docs/services.md.
func Names() []string { return names(definitions) }

func names(list []definition) (out []string) {
	for _, d := range list {
		out = append(out, d.name)
	}
	return out
}

// A MissingError is the error of Start if this machine lacks a program that a service needs.
type MissingError struct{ Service, Reason string }

func (m *MissingError) Error() string {
	return fmt.Sprintf("%s cannot be started: %s", m.Service, m.Reason)
}

// startTimeout is the maximum duration of a start. LiteLLM is the slowest to start, especially on a busy machine.
const startTimeout = 4 * time.Minute

// Start starts a service and waits until it is ready. If this machine lacks a program, the error is a *MissingError.
// After an error, no process remains.
func Start(ctx context.Context, name string, o Options) (*Instance, error) {
	all := append(slices.Concat(definitions, gateways), fastapiRooms)
	i := slices.IndexFunc(all, func(d definition) bool { return d.name == name })
	if i < 0 {
		return nil, fmt.Errorf("start service %q: unknown name; use one of %s", name, strings.Join(names(all), ", "))
	}
	d := all[i]
	root, err := findRoot()
	if err != nil {
		return nil, err
	}
	r := &Instance{Name: name, Service: d.service}
	if strings.Contains(d.service, "/") {
		r.Service = filepath.Join(root, d.service)
	}
	if r.address, err = address.Free(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	r.URL = "http://" + r.address
	if r.dir, err = os.MkdirTemp("", "service-"); err != nil {
		return nil, fmt.Errorf("start %s: create its folder: %w", name, err)
	}
	if r.command, err = d.command(setup{Options: o, root: root, dir: r.dir, address: r.address}); err != nil {
		r.Stop()
		return nil, err
	}
	r.Env = r.command.runEnv
	if r.SubscribeToken = r.command.key; r.SubscribeToken != "" {
		r.Env = append(r.Env, "SUBSCRIBE_TOKEN="+r.SubscribeToken)
	}
	if r.command.token != "" {
		r.Env = append(r.Env, "PUBLISH_TOKEN="+r.command.token)
	}
	r.Version, r.Settings = r.command.version, r.command.settings
	if err := r.startProcess(ctx); err != nil {
		r.Stop()
		return nil, err
	}
	return r, nil
}

// startProcess starts the service at its address and waits until it is ready.
func (r *Instance) startProcess(ctx context.Context) error {
	env := append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.dir}, r.command.env...)
	p, err := process.Start(process.Spec{
		Name: r.Name, Path: r.command.path, Args: r.command.args, Env: env, Log: r.log(), OrphanSignal: syscall.SIGTERM,
	})
	if err != nil {
		return err
	}
	r.process = p
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for !r.ready(ctx) {
		select {
		case <-p.Done():
			return fmt.Errorf("start %s: the process ended (%w):\n%s", r.Name, cmp.Or(p.Err(), errors.New("exit code 0")), r.logTail())
		case <-ctx.Done():
			return fmt.Errorf("start %s: not ready on %s: %w:\n%s", r.Name, r.address, ctx.Err(), r.logTail())
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// ready reports whether the service listens or, if it has a health path, whether that path returns status 200.
func (r *Instance) ready(ctx context.Context) bool {
	if r.command.health == "" {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "tcp", r.address)
		return err == nil && conn.Close() == nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL+r.command.health, nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	return err == nil && response.Body.Close() == nil && response.StatusCode == http.StatusOK
}

func (r *Instance) log() string { return filepath.Join(r.dir, r.Name+".log") }

func (r *Instance) logTail() string {
	text, _ := os.ReadFile(r.log())
	return string(text[max(0, len(text)-2000):])
}

func (r *Instance) stopProcess() {
	if r.process != nil {
		r.process.Stop(context.Background(), syscall.SIGTERM, 5*time.Second)
		r.process = nil
	}
}

// Restart stops the service and starts it again at the same address. The service keeps messages that it stored in
// files.
func (r *Instance) Restart(ctx context.Context) error {
	r.stopProcess()
	return r.startProcess(ctx)
}

// Stop ends the service, and removes its folder.
func (r *Instance) Stop() {
	r.stopProcess()
	_ = os.RemoveAll(r.dir)
}

func findRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(filepath.Join(dir, "load-tests", "services")); err == nil && info.IsDir() {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find the repository: %s is not in a clone of sse-soak; run the command in a clone", start)
		}
	}
}

func buildPath(s setup, service string, elements ...string) (string, error) {
	path := filepath.Join(append([]string{s.root, "bin", "services"}, elements...)...)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return "", &MissingError{service, path + " is missing; run `make services`"}
	} else if err != nil {
		return "", err
	}
	return path, nil
}

// seconds returns d in whole seconds, at least one, or fallback if d is 0.
func seconds(d, fallback time.Duration) int {
	if d == 0 {
		d = fallback
	}
	return max(1, int(d/time.Second))
}

// A Usage is the CPU and memory usage of all processes of a service.
type Usage struct {
	// Memory is the proportional set size in bytes. A page that these processes share counts only once.
	Memory uint64
	// CPU is the user and system time of the running processes, in seconds.
	CPU float64
}

// Usage returns the current usage of the service, which must be running.
func (r *Instance) Usage() (Usage, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return Usage{}, fmt.Errorf("find the processes of %s: %w", r.Name, err)
	}
	var pids []int
	for _, p := range all {
		// The workers are in the process group of the service.
		if stat, err := p.Stat(); err == nil && stat.PGRP == r.process.PID() && stat.State != "Z" {
			pids = append(pids, p.PID)
		}
	}
	return UsageOf(r.Name, pids)
}

// UsageOf returns the total usage of the processes of a service. Errors contain the name of the service.
func UsageOf(name string, pids []int) (out Usage, err error) {
	if len(pids) == 0 {
		return out, fmt.Errorf("read the usage of %s: the service is not running", name)
	}
	for _, pid := range pids {
		p, err := procfs.NewProc(pid)
		if err != nil {
			return out, fmt.Errorf("read the usage of %s: %w", name, err)
		}
		memory, err := p.ProcSMapsRollup()
		if err != nil {
			return out, fmt.Errorf("read the memory of %s: %w", name, err)
		}
		stat, err := p.Stat()
		if err != nil {
			return out, fmt.Errorf("read the CPU time of %s: %w", name, err)
		}
		out.Memory += memory.Pss
		out.CPU += stat.CPUTime()
	}
	return out, nil
}
