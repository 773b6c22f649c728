package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sse-soak/sse-soak/internal/host/process"
)

const (
	// openPort is the default port of `soak-aws open`. Grafana's links use it (modules/stack/setup.sh).
	openPort = 8080
	// stackPort is the port of nginx on the stack's host, which serves Grafana, Prometheus and the backend.
	stackPort = 80
	// clusterPort is the port of the Kubernetes API on runner-1.
	clusterPort = 6443
	// openTimeout is the time limit for the first response through a session.
	openTimeout = time.Minute
)

// checkInterval is the time between two checks of a tunnel. AWS ends idle sessions after 20 minutes by default. The
// preferences of an account can reduce this time to one minute.
var checkInterval = 30 * time.Second

// A tunnel forwards a port of the loopback interface to a host through Systems Manager, which encrypts all traffic.
type tunnel struct {
	address string // HOST:PORT on this machine
	region  string
	name    string // name of the host
	host    string // id of the host
	port    int    // port on the host
	stop    context.CancelFunc
	running sync.WaitGroup // the goroutine that runs maintain
}

// openTunnel opens a tunnel from the port local (0: a free port), and reopens it after each disconnect until close.
func openTunnel(ctx context.Context, out outputs, name string, port, local int) (*tunnel, error) {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(local)))
	if err != nil {
		return nil, fmt.Errorf("open a local port for the tunnel: %w; choose another port with `bin/soak-aws open --port 8081`", err)
	}
	_ = l.Close() // the AWS CLI will listen on this port
	// The tunnel outlives ctx, because a soak reads the ledger of the backend after Ctrl-C.
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	t := &tunnel{address: l.Addr().String(), region: out.Settings.Region, name: name, host: out.Instances[name], port: port, stop: stop}
	first := make(chan error, 1)
	t.running.Go(func() { t.maintain(life, first) })
	select {
	case err = <-first:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		t.close()
	}
	return t, err
}

func (t *tunnel) close() {
	t.stop()
	t.running.Wait()
}

// maintain runs one session after another until ctx ends, or until the first session fails to open. first receives the
// result of opening the first session.
func (t *tunnel) maintain(ctx context.Context, first chan<- error) {
	for wasOpen, hasWarned := false, false; ctx.Err() == nil; {
		isOpen := false
		err := t.session(ctx, func() {
			if isOpen = true; wasOpen {
				warn("the tunnel to the host " + t.name + " is open again")
			} else {
				first <- nil
			}
		})
		switch {
		case ctx.Err() != nil:
			return
		case isOpen:
			wasOpen, hasWarned = true, false
			warn("the tunnel to the host " + t.name + " was disconnected; reopening it")
			continue
		case !wasOpen:
			first <- err
			return
		case !hasWarned:
			hasWarned = true
			warn(err.Error() + "; retrying")
		}
		select {
		case <-ctx.Done():
		case <-time.After(checkInterval):
		}
	}
}

// responds reports whether the remote port responds. The cluster requires TLS, but responds to HTTP with an error.
func (t *tunnel) responds(ctx context.Context) bool {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+t.address+"/healthz", nil)
	if err != nil {
		return false
	}
	resp, err := (&http.Client{Timeout: 10 * time.Second}).Do(r)
	return err == nil && resp.Body.Close() == nil
}

// session runs the AWS CLI until it ends, the remote port does not respond, or ctx ends. It calls opened after
// the first response. Repeated checks of the port also keep the session from becoming idle.
func (t *tunnel) session(ctx context.Context, opened func()) error {
	_, local, _ := net.SplitHostPort(t.address)
	log, err := os.CreateTemp("", "soak-aws-")
	if err != nil {
		return err
	}
	defer os.Remove(log.Name())
	defer log.Close()
	p, err := process.Start(process.Spec{
		Name: "the AWS CLI", Path: "aws", Env: os.Environ(), Output: log,
		Args: []string{"ssm", "start-session", "--region", t.region, "--target", t.host,
			"--document-name", "AWS-StartPortForwardingSession", "--parameters", fmt.Sprintf("portNumber=%d,localPortNumber=%s", t.port, local)},
	})
	if err != nil {
		return err
	}
	if release, err := p.Guard(); err == nil { // a plugin that outlives soak-aws would occupy the port
		defer release()
	}
	defer p.StopGroup(context.Background(), syscall.SIGINT, 5*time.Second) // like Ctrl-C
	pause, start, isOpen := 100*time.Millisecond, time.Now(), false
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.Done():
			text, _ := os.ReadFile(log.Name())
			reason := cmp.Or(explain(string(text)), "aws ssm start-session ended")
			output := cmp.Or(strings.TrimSpace(string(text)), "no output")
			return fmt.Errorf("no tunnel to the host %s (%s): %s (%s)", t.name, t.host, reason, output)
		case <-time.After(pause):
		}
		switch ok := t.responds(ctx); {
		case ok && !isOpen:
			isOpen, pause = true, checkInterval
			opened()
		case isOpen && !ok:
			return errors.New("the tunnel no longer responds")
		case !ok && time.Since(start) > openTimeout:
			return fmt.Errorf("no response from the host %s (%s) through the tunnel within %v; check the state of the hosts with `make aws-up`",
				t.name, t.host, openTimeout)
		}
	}
}

func (d *deployment) open(ctx context.Context, port int) error {
	out, err := d.outputs(ctx)
	if err != nil {
		return err
	}
	t, err := openTunnel(ctx, out, "stack", stackPort, port)
	if err != nil {
		return err
	}
	defer t.close()
	_, local, _ := net.SplitHostPort(t.address)
	fmt.Printf("grafana     http://localhost:%s/grafana/     user admin, password GRAFANA_PASSWORD\n"+
		"prometheus  http://localhost:%[1]s/prometheus/  user prometheus, password PROMETHEUS_PASSWORD\n"+
		"passwords   aws ssm get-parameter --region %s --name %s --with-decryption --query Parameter.Value --output text\n"+
		"Open until Ctrl-C.\n", local, out.Settings.Region, out.Secrets)
	select {
	case <-ctx.Done():
	case <-hangup:
	}
	return nil
}
