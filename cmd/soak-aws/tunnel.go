package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sse-soak/sse-soak/internal/process"
)

// A remoteEnd is the end of a tunnel on a host of the deployment.
type remoteEnd struct{ host, port, what string }

var (
	// stackEnd is nginx on the stack's host. Grafana, Prometheus and the backend's own pages are behind it.
	stackEnd = remoteEnd{"stack", "80", "the stack's host"}
	// clusterEnd is the Kubernetes API of the runners.
	clusterEnd = remoteEnd{"runner-1", "6443", "the runners' cluster"}
)

const (
	// openPort is the default port of `soak-aws open`. The links of Grafana on the stack's host name it (modules/stack/setup.sh).
	openPort = 8080
	// opensWithin is how long a session may take until its end answers.
	opensWithin = time.Minute
	pluginHelp  = "https://docs.aws.amazon.com/systems-manager/latest/userguide/session-manager-working-with-install-plugin.html"
)

// A tunnel is a port of this machine's loopback interface that leads to a host by Systems Manager, which encrypts it: nothing
// crosses the internet in another way. The AWS command line and its plugin make it.
type tunnel struct {
	address string // HOST:PORT on this machine
	region  string
	host    string // id of the instance
	end     remoteEnd
	every   time.Duration // between two looks at whether it is open
	tell    func(string)
	stop    context.CancelFunc
	ended   sync.WaitGroup
}

// tunnelTools is an error where this machine lacks a program that a tunnel needs.
func tunnelTools() error {
	for _, tool := range [][3]string{
		{"aws", "the AWS command line", "https://docs.aws.amazon.com/cli/latest/userguide/getting-started-install.html"},
		{"session-manager-plugin", "the Session Manager plugin of the AWS command line", pluginHelp},
	} {
		if _, err := exec.LookPath(tool[0]); err != nil {
			return fmt.Errorf("%s (%s), which makes the encrypted way to the hosts, is not installed: %s", tool[1], tool[0], tool[2])
		}
	}
	return nil
}

// openTunnel returns once the remote end answers through it. With port 0 it takes a free one. It is kept open, and opened anew
// where it is cut, until close; tell hears of that.
func openTunnel(ctx context.Context, out outputs, end remoteEnd, port int, tell func(string)) (*tunnel, error) {
	if out.Instances[end.host] == "" {
		return nil, fmt.Errorf("terraform knows no host %s: `make aws-up` makes it", end.host)
	}
	if err := tunnelTools(); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("port %d of this machine is taken: name another one, `bin/soak-aws open --port 8081` (%w)", port, err)
	}
	// AWS ends a session that is idle for 20 minutes, or for as few as one where the account's preferences say so.
	t := &tunnel{address: l.Addr().String(), region: out.Region, host: out.Instances[end.host], end: end, every: 30 * time.Second, tell: tell}
	if err := l.Close(); err != nil {
		return nil, err
	}
	return t, t.open(ctx)
}

func (t *tunnel) open(ctx context.Context) error {
	// It outlives Ctrl-C, after which a soak still asks for the backend's ledger: close ends it.
	keeping, stop := context.WithCancel(context.WithoutCancel(ctx))
	t.stop = stop
	opened := make(chan error, 1)
	t.ended.Go(func() { t.keep(keeping, opened) })
	var err error
	select {
	case err = <-opened:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		t.close()
	}
	return err
}

// close ends the session.
func (t *tunnel) close() {
	t.stop()
	t.ended.Wait()
}

// keep runs one session after another. The result of the first goes to opened.
func (t *tunnel) keep(ctx context.Context, opened chan<- error) {
	first, told := true, false
	for ctx.Err() == nil {
		wasOpen := false
		err := t.session(ctx, func() {
			if wasOpen = true; first {
				opened <- nil
			} else {
				t.tell("the tunnel to " + t.end.what + " is open again")
			}
			first, told = false, false
		})
		switch {
		case ctx.Err() != nil:
			return
		case first:
			opened <- err
			return
		case wasOpen:
			t.tell("the tunnel to " + t.end.what + " was cut; opening another one")
			continue
		case !told:
			told = true
			t.tell(err.Error() + "; trying again")
		}
		select {
		case <-ctx.Done():
		case <-time.After(t.every):
		}
	}
}

// answers reports whether the remote end answers through the tunnel. The cluster, which speaks TLS, answers that it is not HTTP.
func (t *tunnel) answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+t.address+"/healthz", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(r)
	return err == nil && resp.Body.Close() == nil
}

// together is a shell that runs its arguments. Descriptor 3 is a pipe from soak-aws, which has no writer: it ends with
// soak-aws, also with one that is killed, and then so do the command line and its plugin. SIGINT is for the plugin.
const together = `trap '' INT; { read -r _; kill -KILL 0; } <&3 & r=$!; "$@" & wait $!; exec 2>/dev/null; kill -KILL $r; wait`

// session runs the AWS command line until it ends, its end no longer answers, or the context ends. The looks at the tunnel also
// keep the session from being idle.
func (t *tunnel) session(ctx context.Context, opened func()) error {
	_, port, _ := net.SplitHostPort(t.address)
	log, err := os.CreateTemp("", "soak-aws-")
	if err != nil {
		return err
	}
	defer os.Remove(log.Name())
	defer log.Close()
	alive, us, err := os.Pipe()
	if err != nil {
		return err
	}
	defer us.Close()
	defer alive.Close()
	p, err := process.Start(process.Spec{
		Name: "the AWS command line", Path: "/bin/sh", Env: os.Environ(), Log: log.Name(), Extra: []*os.File{alive},
		Args: []string{"-c", together, "sh", "aws", "ssm", "start-session", "--region", t.region, "--target", t.host,
			"--document-name", "AWS-StartPortForwardingSession", "--parameters", "portNumber=" + t.end.port + ",localPortNumber=" + port},
	})
	if err != nil {
		return err
	}
	// As Ctrl-C does; what does not listen is killed. A plugin that outlives the command line would keep the port.
	defer p.StopGroup(context.Background(), syscall.SIGINT, 5*time.Second)
	pause, begun, isOpen := 100*time.Millisecond, time.Now(), false
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.Done():
			return t.failure(log.Name())
		case <-time.After(pause):
		}
		switch ok := t.answers(ctx); {
		case ok && !isOpen:
			isOpen, pause = true, t.every
			opened()
		case isOpen && !ok:
			return errors.New("it does not answer any more")
		case !ok && time.Since(begun) > opensWithin:
			return fmt.Errorf("%s (%s) does not answer through the tunnel after %v; `bin/soak-aws logs` shows the state of the host", t.end.what, t.host, opensWithin)
		}
	}
}

// failure explains why the command line ended.
func (t *tunnel) failure(log string) error {
	text, _ := os.ReadFile(log) //nolint:gosec // G304: a temporary file
	said := strings.TrimSpace(string(text))
	for _, known := range [][2]string{
		{"TargetNotConnected", "it is not connected to Systems Manager: it has ended, or has not been up for a minute yet; `bin/soak-aws logs` says more"},
		{"AccessDenied", "these credentials may not open a session: docs/aws.md has the policy with ssm:StartSession"},
		{"ExpiredToken", "the credentials have expired: log in again (aws sso login)"},
		{"SessionManagerPlugin is not found", "the Session Manager plugin is not installed: " + pluginHelp},
	} {
		if strings.Contains(said, known[0]) {
			return fmt.Errorf("no tunnel to %s %s: %s (%s)", t.end.what, t.host, known[1], said)
		}
	}
	return fmt.Errorf("no tunnel to %s %s: aws ssm start-session ended: %s", t.end.what, t.host, cmp.Or(said, "it said nothing"))
}

// open opens the way to Grafana and Prometheus until Ctrl-C.
func (d *deployment) open(ctx context.Context, port int) error {
	out, err := d.outputs(ctx)
	if err != nil {
		return err
	}
	t, err := openTunnel(ctx, out, stackEnd, port, func(news string) { fmt.Fprintln(os.Stderr, news) })
	if err != nil {
		return err
	}
	defer t.close()
	_, local, _ := net.SplitHostPort(t.address)
	fmt.Printf("grafana     http://localhost:%s/grafana/     user admin, password GRAFANA_PASSWORD\n"+
		"prometheus  http://localhost:%[1]s/prometheus/  user prometheus, password PROMETHEUS_PASSWORD\n"+
		"passwords   aws ssm get-parameter --region %s --name %s --with-decryption --query Parameter.Value --output text\n"+
		"Open until Ctrl-C.\n", local, out.Region, out.Secrets)
	<-ctx.Done()
	return nil
}
