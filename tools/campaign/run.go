package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

func itoa(n int) string { return strconv.Itoa(n) }

// A run is one scenario under way.
type run struct {
	*scenario
	root    string // of the repository
	dir     string // its own
	service *service
	harmed  *http.Server
	front   *front
	wire    *wire
	bucket  *bucket
	url     string
	address string // to listen at; "": any
}

// testid names each run: the folder makes it its own.
const testid = "t"

// do runs a scenario in dir, and says what was found and what was to be found.
func do(ctx context.Context, sc *scenario, root, dir string) (*judged, expected, time.Duration, error) {
	r := &run{scenario: sc, root: root, dir: dir}
	defer r.stop()
	if sc.Tamper == tamperStale { // the same run, once before
		if err := r.earlier(ctx); err != nil {
			return nil, expected{}, 0, err
		}
	}
	if err := r.start(ctx); err != nil {
		return nil, expected{}, 0, err
	}
	load := r.soak
	if sc.Laptops != "" {
		load = r.laptops
	}
	j, err := load(ctx)
	if err != nil {
		return nil, expected{}, 0, err
	}
	if sc.Tamper != "" && j.Verdict.Verdict != verdict.Pass {
		return j, passes(), 0, nil
	}
	if sc.Tamper != "" {
		j, err = r.tampered(ctx, j)
		return j, r.expected(), 0, err
	}
	r.stop()
	late := time.Duration(0)
	if r.service != nil {
		late = r.service.late.worst()
	}
	return j, r.expected(), late, nil
}

func (r *run) expected() expected {
	if r.want != nil {
		return *r.want
	}
	if r.service == nil {
		return passes()
	}
	return expectTruth(r.scenario, r.service.all())
}

// start starts what is soaked.
func (r *run) start(ctx context.Context) (err error) {
	if r.Bucket != "" {
		if r.bucket, err = startBucket(r.Bucket); err != nil {
			return err
		}
	}
	if r.Harm == "" && r.Service == nil {
		return nil // soak starts it
	}
	var l net.Listener
	if r.address != "" {
		l, err = net.Listen("tcp", r.address)
	} else {
		l, err = listen()
	}
	if err != nil {
		return err
	}
	address := l.Addr().String()
	if r.Harm != "" {
		r.harmed = startHarmed(r.Harm, r.Strike.Count, l)
		r.url = "http://" + address
		return nil
	}
	listeners := []net.Listener{l}
	if r.Service.Nginx {
		socket := filepath.Join(r.dir, "s.sock")
		u, err := net.Listen("unix", socket)
		if err != nil {
			return errors.Join(err, l.Close())
		}
		listeners = append(listeners, u)
		if r.front, err = startNginx(ctx, r.dir, socket, &r.Plan); err != nil {
			return errors.Join(err, l.Close(), u.Close())
		}
		address = r.front.address
	}
	r.service = startService(*r.Service, r.Strike, listeners...)
	if r.Wire.Does != "" {
		w, err := listen()
		if err != nil {
			return err
		}
		r.wire = startWire(r.Wire, w, address, r.service.device)
		address = w.Addr().String()
	}
	r.url = "http://" + address
	return nil
}

func (r *run) stop() {
	if r.service != nil {
		r.service.stop()
	}
	if r.wire != nil {
		r.wire.stop()
	}
	if r.front != nil {
		r.front.stop()
	}
	if r.bucket != nil {
		r.bucket.stop()
	}
	if r.harmed != nil {
		_ = r.harmed.Close()
	}
	r.wire, r.front, r.bucket, r.harmed = nil, nil, nil, nil
}

// arguments are those of bin/soak.
func (r *run) arguments() []string {
	args := []string{"run", "--out", filepath.Join(r.dir, "out"), "--testid", testid}
	if r.Suite != "" {
		args = []string{"run", r.Suite, "--profile", "smoke", "--out", filepath.Join(r.dir, "out"), "--testid", testid}
	} else {
		args = append(args, r.Plan.flags()...)
	}
	if r.url != "" {
		args = append(args, "--backend-url", r.url)
	}
	if r.NoNginx {
		args = append(args, "--no-nginx")
	}
	if r.bucket != nil {
		args = append(args, "--shards", r.bucket.place)
	}
	return append(args, r.Args...)
}

// patience is how long a run may take beyond its plan.
const patience = 100 * time.Second

// soak runs bin/soak to its end.
func (r *run) soak(ctx context.Context) (*judged, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(r.Plan.Seconds)*time.Second+patience)
	defer cancel()
	cmd, text := r.command(ctx, "soak", r.arguments()...)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	watching, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { r.disturb(watching, cmd.Process.Pid, r.opened) })
	if r.Bucket == bucketDenies {
		beside.Go(func() {
			if pause(watching, r.hold()/2) {
				r.bucket.deny.Store(true)
			}
		})
	}
	err := cmd.Wait()
	stop()
	beside.Wait()
	_ = os.WriteFile(filepath.Join(r.dir, "soak.txt"), text.Bytes(), 0o644)
	return judgedBy(ctx, err, filepath.Join(r.dir, "out", testid), text.String())
}

// opened says that every stream has been opened.
func (r *run) opened() bool {
	if r.service == nil {
		return true
	}
	open := 0
	for _, d := range r.service.all() {
		d.mu.Lock()
		open += btoi(d.streams > 0)
		d.mu.Unlock()
	}
	return open == r.Plan.Connections
}

// command is a program of this repository, with an environment of its own. It ends with ctx, in
// order at first.
func (r *run) command(ctx context.Context, program string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	cmd := exec.CommandContext(ctx, filepath.Join(r.root, "bin", program), args...)
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	cmd.Dir = r.dir // a shard that was not delivered is kept there
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" + r.dir, "BACKEND_FAULT=" + r.Fault,
	}, bucketEnv...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C here is told by us
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	return cmd, &text
}

// errStopped says that the campaign was stopped in the middle of a run.
var errStopped = errors.New("stopped")

// judgedBy is the verdict of a run that ended with err. One that left no verdict.json has its exit
// code, and what it said.
func judgedBy(ctx context.Context, err error, dir, text string) (*judged, error) {
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, errStopped
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	code := 0
	if exit != nil {
		code = exit.ExitCode()
	}
	j := &judged{}
	b, readErr := os.ReadFile(filepath.Join(dir, results.VerdictFile))
	if readErr == nil {
		if err := json.Unmarshal(b, j); err != nil {
			return nil, err
		}
		if want := j.Verdict.Verdict.ExitCode(); want != code {
			return nil, fmt.Errorf("the verdict is %s, the exit code %d", j.Verdict.Verdict, code)
		}
		return j, nil
	}
	if code != 2 {
		return nil, fmt.Errorf("exit code %d and no verdict: %s", code, last(text))
	}
	j.Verdict.Verdict, j.Reasons = verdict.Invalid, strings.Split(text, "\n")
	return j, nil
}

func last(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// tampered merges a copy of the run again, of which files were changed. Where nothing was changed
// the counts have to be the same.
func (r *run) tampered(ctx context.Context, first *judged) (*judged, error) {
	dir := filepath.Join(r.dir, "copy")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(r.dir, "out", testid))); err != nil {
		return nil, err
	}
	if err := os.Remove(filepath.Join(dir, results.VerdictFile)); err != nil {
		return nil, err
	}
	if err := tamper(r.Tamper, dir, filepath.Join(r.dir, "earlier", testid)); err != nil {
		return nil, err
	}
	j, err := r.merge(ctx, dir)
	if err != nil || r.Tamper != tamperNothing {
		return j, err
	}
	for name, n := range first.counts() {
		if again := j.counts()[name]; again != n {
			return nil, fmt.Errorf("merged again, %s is %d instead of %d", name, again, n)
		}
	}
	return j, nil
}

func (r *run) merge(ctx context.Context, dir string) (*judged, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	cmd, text := r.command(ctx, "soak", "merge", dir, "--out", filepath.Join(r.dir, "merged"))
	return judgedBy(ctx, cmd.Run(), dir, text.String())
}

// earlier makes the same run at the same address, and puts it aside.
func (r *run) earlier(ctx context.Context) error {
	if err := r.start(ctx); err != nil {
		return err
	}
	r.address = strings.TrimPrefix(r.url, "http://")
	_, err := r.soak(ctx)
	r.stop()
	if err != nil {
		return err
	}
	return os.Rename(filepath.Join(r.dir, "out"), filepath.Join(r.dir, "earlier"))
}
