package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
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

const (
	// stackPort is nginx's port on the stack's host. Grafana, Prometheus and the backend's own pages are behind it.
	stackPort = "80"
	// openPort is the port of this machine that `soak-aws open` takes. Grafana on the stack's host is told that it is
	// reached there (modules/stack/setup.sh).
	openPort = 8080
	// sessionDocument is what Systems Manager calls forwarding a port.
	sessionDocument = "AWS-StartPortForwardingSession"
)

// A tunnel is a port of this machine's loopback interface that leads to the stack's host by Systems Manager, which
// encrypts it: passwords and the token cross the internet in no other way. The AWS command line and its plugin make it.
type tunnel struct {
	address string // HOST:PORT on this machine
	region  string
	host    string        // id of the instance
	every   time.Duration // between two looks at whether it is open
	tell    func(string)
	ended   sync.WaitGroup
	stop    context.CancelFunc
}

// tunnelTools is an error where this machine lacks a program that a tunnel needs.
func tunnelTools() error {
	for _, tool := range [][3]string{
		{"aws", "the AWS command line", "https://docs.aws.amazon.com/cli/latest/userguide/getting-started-install.html"},
		{"session-manager-plugin", "the Session Manager plugin of the AWS command line", "https://docs.aws.amazon.com/systems-manager/latest/userguide/session-manager-working-with-install-plugin.html"},
	} {
		if _, err := exec.LookPath(tool[0]); err != nil {
			return fmt.Errorf("%s (%s), which makes the encrypted way to the stack's host, is not installed: %s", tool[1], tool[0], tool[2])
		}
	}
	return nil
}

// openTunnel returns once the stack answers through it. With port 0 it takes a free one. It is kept open, and opened anew
// where it is cut, until close; tell hears of that.
func openTunnel(ctx context.Context, out outputs, port int, tell func(string)) (*tunnel, error) {
	host := out.Instances["stack"]
	if host == "" {
		return nil, errors.New("terraform knows no host of the stack: `make aws-up` makes it")
	}
	if err := tunnelTools(); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("port %d of this machine is taken: name another one, `bin/soak-aws open --port 8081` (%w)", port, err)
	}
	// AWS ends a session that is idle for 20 minutes, or for as few as one where the account's preferences say so.
	t := &tunnel{address: l.Addr().String(), region: out.Region, host: host, every: 30 * time.Second, tell: tell}
	if err := l.Close(); err != nil {
		return nil, err
	}
	return t, t.open(ctx)
}

func (t *tunnel) open(ctx context.Context) error {
	s, err := t.session(ctx)
	if err != nil {
		return err
	}
	// It outlives Ctrl-C, after which a soak still asks for the backend's ledger: close ends it.
	keeping, stop := context.WithCancel(context.WithoutCancel(ctx))
	t.stop = stop
	t.ended.Go(func() { t.keep(keeping, s) })
	return nil
}

// close ends the session.
func (t *tunnel) close() {
	t.stop()
	t.ended.Wait()
}

// keep looks whether the tunnel is open, which also keeps the session from being idle, and opens another one where it is not.
func (t *tunnel) keep(ctx context.Context, s *session) {
	for told := false; ; {
		if s != nil {
			select {
			case <-ctx.Done():
				s.end()
				return
			case <-s.ended:
			case <-time.After(t.every):
				if t.answers(ctx) {
					continue
				}
				s.end()
			}
		}
		if ctx.Err() != nil {
			return
		}
		if !told {
			t.tell("the tunnel to the stack's host was cut; opening another one")
		}
		var err error
		if s, err = t.session(ctx); err != nil && ctx.Err() == nil {
			if !told {
				t.tell(err.Error() + "; trying again")
			}
			told = true
			select {
			case <-ctx.Done():
			case <-time.After(t.every):
			}
			continue
		}
		if s != nil {
			told = false
			t.tell("the tunnel to the stack's host is open again")
		}
	}
}

// answers reports whether the stack answers through the tunnel.
func (t *tunnel) answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+t.address+"/healthz", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	return resp.Body.Close() == nil
}

// A session is one run of the AWS command line.
type session struct {
	process *process.Process
	said    []byte // once it has ended
	ended   chan struct{}
}

// opensWithin is how long a session may take until the stack answers through it.
const opensWithin = time.Minute

// together is a shell that runs its arguments. Descriptor 3 is a pipe from soak-aws, which has no writer: it ends with
// soak-aws, also with one that is killed, and then so do the command line and its plugin. SIGINT is for the plugin.
const together = `trap '' INT; { read -r _; kill -KILL 0; } <&3 & r=$!; "$@" & wait $!; exec 2>/dev/null; kill -KILL $r; wait`

// session starts one, and waits until the stack answers.
func (t *tunnel) session(ctx context.Context) (*session, error) {
	_, port, err := net.SplitHostPort(t.address)
	if err != nil {
		return nil, err
	}
	log, err := os.CreateTemp("", "soak-aws-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(log.Name()) // what is open stays
	alive, us, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	defer alive.Close()
	s := &session{ended: make(chan struct{})}
	s.process, err = process.Start(process.Spec{
		Name: "the AWS command line", Path: "/bin/sh", Env: os.Environ(), Log: log.Name(), Extra: []*os.File{alive},
		Args: []string{"-c", together, "sh", "aws", "ssm", "start-session", "--region", t.region, "--target", t.host,
			"--document-name", sessionDocument, "--parameters", "portNumber=" + stackPort + ",localPortNumber=" + port},
	})
	if err != nil {
		return nil, errors.Join(err, log.Close(), us.Close())
	}
	go func() {
		<-s.process.Done()
		_ = us.Close()
		if s.process.LeftBehind() { // a plugin that outlives the command line would keep the port
			s.stop()
		}
		s.said, _ = io.ReadAll(log)
		_ = log.Close()
		close(s.ended)
	}()
	err = poll(ctx, 100*time.Millisecond, opensWithin, func() (bool, error) {
		select {
		case <-s.ended:
			return false, s.failure(t.host)
		default:
			return t.answers(ctx), nil
		}
	})
	if errors.Is(err, errTooLong) {
		err = fmt.Errorf("the stack does not answer through the tunnel to its host %s after %v; `bin/soak-aws logs` shows the state of the host", t.host, opensWithin)
	}
	if err != nil {
		s.end()
		return nil, err
	}
	return s, nil
}

// end stops the command line and its plugin, and waits for them.
func (s *session) end() {
	select {
	case <-s.process.Done():
	default:
		s.stop()
	}
	<-s.ended
}

// stop asks as Ctrl-C would; what does not listen is killed.
func (s *session) stop() {
	s.process.StopGroup(context.Background(), syscall.SIGINT, 5*time.Second)
}

// failure is what the command line said of a session that ended before it was open.
func (s *session) failure(host string) error {
	said := strings.TrimSpace(string(s.said))
	for _, known := range [][2]string{
		{"TargetNotConnected", "it is not connected to Systems Manager: it has ended, or has not been up for a minute yet; `bin/soak-aws logs` says more"},
		{"AccessDenied", "these credentials may not open a session: docs/aws.md has the policy with ssm:StartSession"},
		{"ExpiredToken", "the credentials have expired: log in again (aws sso login)"},
		{"SessionManagerPlugin is not found", "the Session Manager plugin is not installed: https://docs.aws.amazon.com/systems-manager/latest/userguide/session-manager-working-with-install-plugin.html"},
	} {
		if strings.Contains(said, known[0]) {
			return fmt.Errorf("no tunnel to the stack's host %s: %s (%s)", host, known[1], said)
		}
	}
	return fmt.Errorf("no tunnel to the stack's host %s: aws ssm start-session ended: %s", host, cmp.Or(said, "it said nothing"))
}

// open opens the way to Grafana and Prometheus until Ctrl-C.
func (d *deployment) open(ctx context.Context, port int) error {
	out, err := d.outputs(ctx)
	if err != nil {
		return err
	}
	t, err := openTunnel(ctx, out, port, func(news string) { fmt.Fprintln(os.Stderr, news) })
	if err != nil {
		return err
	}
	defer t.close()
	_, local, err := net.SplitHostPort(t.address)
	if err != nil {
		return err
	}
	fmt.Printf("grafana     http://localhost:%s/grafana/     user admin, password GRAFANA_PASSWORD\n"+
		"prometheus  http://localhost:%[1]s/prometheus/  user prometheus, password PROMETHEUS_PASSWORD\n"+
		"passwords   aws ssm get-parameter --region %s --name %s --with-decryption --query Parameter.Value --output text\n"+
		"Open until Ctrl-C.\n", local, out.Region, out.Secrets)
	<-ctx.Done()
	return nil
}
