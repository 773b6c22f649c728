package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/address"
	"github.com/sse-soak/sse-soak/test/untested"
)

// TestMain makes this program act as the AWS CLI, its plugin or soak-aws if it is started under such a name.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "aws":
		os.Exit(fakeSession(os.Args[1:]))
	case "session-manager-plugin":
		os.Exit(fakePlugin(os.Args[1:]))
	case "soak-aws":
		main()
	}
	code := m.Run()
	stopCommandLine()
	os.Exit(code)
}

// fakeSession acts as `aws ssm start-session` for a port. It forwards connections until SIGINT, or until the file named
// by FAKE_AWS_CUT exists. Other arguments run the real AWS CLI.
func fakeSession(args []string) int {
	if args[1] != "start-session" {
		return commandLine(args)
	}
	if refusal := os.Getenv("FAKE_AWS_REFUSES"); refusal != "" {
		fmt.Fprintln(os.Stderr, refusal)
		return 254
	}
	_, port, ok := strings.Cut(args[len(args)-1], "localPortNumber=")
	if f, err := os.OpenFile(os.Getenv("FAKE_AWS_LOG"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
		_, _ = fmt.Fprintln(f, strings.Join(args, " "))
		_ = f.Close()
	}
	if !ok {
		return 2
	}
	if os.Getenv("FAKE_AWS_DIES") != "" {
		return leavePlugin(port)
	}
	if strings.Contains(args[len(args)-1], "portNumber=6443") {
		return forward(port, os.Getenv("FAKE_AWS_CLUSTER"))
	}
	return forward(port, os.Getenv("FAKE_AWS_STACK"))
}

// leavePlugin acts as a session that is killed when the file named by FAKE_AWS_CUT exists. Its plugin continues to
// listen on the port.
func leavePlugin(port string) int {
	cut := os.Getenv("FAKE_AWS_CUT")
	plugin := exec.Command(os.Args[0], "ssm", "start-session", "localPortNumber="+port)
	plugin.Env = append(os.Environ(), "FAKE_AWS_DIES=", "FAKE_AWS_LOG=", "FAKE_AWS_CUT="+cut+".never")
	plugin.Stdout, plugin.Stderr = os.Stdout, os.Stderr
	if err := plugin.Start(); err != nil {
		return 3
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	for {
		select {
		case <-interrupted:
			_ = plugin.Wait()
			return 0
		case <-time.After(5 * time.Millisecond):
			if os.Remove(cut) == nil {
				return 1
			}
		}
	}
}

// forward listens on a port of localhost and forwards connections, like the plugin, until SIGINT.
func forward(port, to string) int {
	l, err := net.Listen("tcp", "localhost:"+port)
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot listen", err)
		return 1
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	go func() {
		for {
			select {
			case <-interrupted:
				os.Exit(0)
			case <-time.After(5 * time.Millisecond):
				if os.Remove(os.Getenv("FAKE_AWS_CUT")) == nil {
					os.Exit(1)
				}
			}
		}
	}()
	for {
		client, err := l.Accept()
		if err != nil {
			return 1
		}
		server, err := net.Dial("tcp", to)
		if err != nil {
			_ = client.Close()
			continue
		}
		go func() { _, _ = io.Copy(server, client) }()
		go func() { _, _ = io.Copy(client, server); _ = client.Close() }()
	}
}

// addSessions adds to the PATH an AWS CLI whose tunnels lead to a stack. It returns the path of a log with one
// line per session, and a function that disconnects the open session.
func addSessions(t *testing.T, stack string) (log string, disconnect func()) {
	t.Helper()
	bin := addPrograms(t, map[string]string{"session-manager-plugin": "#!/bin/sh\n"})
	linkProgram(t, bin, "aws")
	log = filepath.Join(bin, "log")
	t.Setenv("FAKE_AWS_STACK", stack)
	t.Setenv("FAKE_AWS_CLUSTER", stack)
	t.Setenv("FAKE_AWS_LOG", log)
	t.Setenv("FAKE_AWS_CUT", filepath.Join(bin, "cut"))
	return log, func() { require.NoError(t, os.WriteFile(filepath.Join(bin, "cut"), nil, 0o600)) }
}

// lines returns the lines of a file, or nil if the file does not exist.
func lines(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	require.NoError(t, err)
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// Until Ctrl-C, Grafana and Prometheus are available at the printed addresses.
func TestOpen(t *testing.T) {
	stack := startStack(t)
	log, _ := addSessions(t, stack.Listener.Addr().String())
	d := newAppliedDeployment(t)
	port := freePort(t)
	ctx, interrupt := context.WithCancel(context.Background())
	ended := make(chan error)
	output := captureStdout(t, func() {
		go func() { ended <- d.open(ctx, port) }()
		address := fmt.Sprintf("http://localhost:%d/grafana/", port)
		require.Eventually(t, func() bool {
			resp, err := http.Get(address)
			return err == nil && resp.Body.Close() == nil
		}, time.Minute, 10*time.Millisecond, "the tunnel must be open")
		require.Eventually(t, func() bool { return len(stack.targets()) > 1 }, time.Minute, 10*time.Millisecond, "the stack must receive requests")
		time.Sleep(time.Second) // the output appears after the first response
		interrupt()
		require.NoError(t, <-ended)
	})
	assert.Contains(t, output, fmt.Sprintf("grafana     http://localhost:%d/grafana/     user admin", port))
	assert.Contains(t, output, fmt.Sprintf("prometheus  http://localhost:%d/prometheus/  user prometheus", port))
	assert.Contains(t, output, "aws ssm get-parameter --region eu-central-1 --name /sse-soak/stack/secrets --with-decryption")
	assert.Equal(t, []string{fmt.Sprintf("ssm start-session --region eu-central-1 --target i-1 --document-name AWS-StartPortForwardingSession --parameters portNumber=80,localPortNumber=%d", port)}, lines(t, log))
	_, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	require.Error(t, err, "the port must be closed")
}

// The tunnel ends if the terminal is closed. If soak-aws is killed, both the tunnel and the plugin end.
func TestTunnelEndsWithItsProcess(t *testing.T) {
	for signal, plugin := range map[syscall.Signal]string{syscall.SIGHUP: "", syscall.SIGKILL: "1"} {
		t.Run(signal.String(), func(t *testing.T) {
			if signal == syscall.SIGHUP {
				untested.RequireHangups(t)
			}
			stack := startStack(t)
			log, _ := addSessions(t, stack.Listener.Addr().String())
			t.Setenv("FAKE_AWS_DIES", plugin)
			d := newAppliedDeployment(t)
			program := linkProgram(t, t.TempDir(), "soak-aws")
			port := freePort(t)
			open := exec.Command(program, "--dir", d.dir, "open", "--port", strconv.Itoa(port))
			output, err := open.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, open.Start())
			_, err = bufio.NewReader(output).ReadString('\n') // the tunnel is open
			require.NoError(t, err)
			require.NoError(t, open.Process.Signal(signal))
			require.Equal(t, signal == syscall.SIGHUP, open.Wait() == nil)
			require.Len(t, lines(t, log), 1)
			closed := func() bool {
				_, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
				return err != nil
			}
			if signal == syscall.SIGHUP {
				require.True(t, closed(), "soak-aws must end after its tunnel")
			}
			require.Eventually(t, closed, time.Minute, 10*time.Millisecond, "the port must be closed")
		})
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	return int(netip.MustParseAddrPort(address.Reserve(t)).Port())
}

// startTunnel opens a tunnel that is checked at the given interval. Its context has ended when it returns, as after
// Ctrl-C: soak then still requests the ledger of the backend. The returned function returns the warnings so far.
func startTunnel(t *testing.T, every time.Duration) (*tunnel, func() []string) {
	t.Helper()
	var mu sync.Mutex
	var warnings []string
	previousWarn, previousInterval := warn, checkInterval
	warn = func(s string) {
		mu.Lock()
		defer mu.Unlock()
		warnings = append(warnings, s)
	}
	checkInterval = every
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	tn, err := openTunnel(ctx, outputs{Settings: settings{Region: "eu-central-1"}, Instances: map[string]string{"stack": "i-1"}}, "stack", stackPort, 0)
	require.NoError(t, err)
	t.Cleanup(func() {
		tn.close()
		warn, checkInterval = previousWarn, previousInterval
	})
	return tn, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string{}, warnings...)
	}
}

// A tunnel must reopen at the same local address, where soak requests the ledger at the end of the run. A killed AWS
// CLI leaves a plugin that listens on the port. The plugin must be stopped too, because otherwise no other session
// could use the port.
func TestDisconnectedTunnelReopens(t *testing.T) {
	for _, plugin := range []string{"", "1"} {
		stack := startStack(t)
		log, disconnect := addSessions(t, stack.Listener.Addr().String())
		t.Setenv("FAKE_AWS_DIES", plugin)
		tn, warnings := startTunnel(t, time.Hour)
		disconnect()
		require.Eventually(t, func() bool { return len(warnings()) >= 2 }, time.Minute, 10*time.Millisecond, "the tunnel must reopen")
		assert.True(t, tn.responds(t.Context()), "the stack must respond through the reopened tunnel")
		assert.Never(t, func() bool { return len(warnings()) > 2 }, 300*time.Millisecond, 50*time.Millisecond)
		assert.Equal(t, []string{"the tunnel to the host stack was disconnected; reopening it", "the tunnel to the host stack is open again"}, warnings())
		assert.Len(t, lines(t, log), 2)
		tn.close()
		_, err := net.Dial("tcp", tn.address)
		require.Error(t, err, "the port must be closed")
	}
}

// The tunnel sends requests, because AWS ends idle sessions. While AWS refuses sessions, the tunnel retries, and warns
// of the refusals only once.
func TestTunnelRetries(t *testing.T) {
	stack := startStack(t)
	log, disconnect := addSessions(t, stack.Listener.Addr().String())
	_, warnings := startTunnel(t, 5*time.Millisecond)
	require.Eventually(t, func() bool { return len(stack.targets()) > 20 }, time.Minute, 10*time.Millisecond, "the tunnel must send requests")
	assert.Empty(t, warnings())
	assert.Len(t, lines(t, log), 1)
	t.Setenv("FAKE_AWS_REFUSES", "An error occurred (ThrottlingException)")
	disconnect()
	require.Eventually(t, func() bool { return len(warnings()) == 2 }, time.Minute, 10*time.Millisecond, "a refused session must cause a warning")
	assert.Contains(t, warnings()[1], "ThrottlingException)); retrying")
	time.Sleep(50 * time.Millisecond)
	assert.Len(t, warnings(), 2)
	t.Setenv("FAKE_AWS_REFUSES", "")
	require.Eventually(t, func() bool { return len(warnings()) == 3 }, time.Minute, 10*time.Millisecond, "the tunnel must reopen")
}

func TestTunnelErrors(t *testing.T) {
	f := startAWS(t)
	f.setReady()
	d := newAppliedDeployment(t)
	t.Run("a port in use", func(t *testing.T) {
		addSessions(t, "127.0.0.1:1")
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer l.Close()
		require.ErrorContains(t, d.open(t.Context(), l.Addr().(*net.TCPAddr).Port), "; choose another port with `bin/soak-aws open --port 8081`")
	})
	for output, want := range map[string]string{
		"An error occurred (TargetNotConnected) when calling the StartSession operation: i-1 is not connected.": "`make aws-up` shows its state",
		"An error occurred (AccessDeniedException) when calling the StartSession operation":                     "grant them the permissions in infra/terraform/deployer-policy.json",
		"something else": "aws ssm start-session ended (something else)",
	} {
		t.Run(output, func(t *testing.T) {
			addSessions(t, "127.0.0.1:1")
			t.Setenv("FAKE_AWS_REFUSES", output)
			err := d.soak(t.Context(), nil)
			require.ErrorContains(t, err, "no tunnel to the host stack (i-1): ")
			require.ErrorContains(t, err, want)
		})
	}
	t.Run("no tools", func(t *testing.T) {
		terraform, err := exec.LookPath("terraform")
		require.NoError(t, err)
		cat, err := exec.LookPath("cat") // the fake terraform calls it
		require.NoError(t, err)
		require.NoError(t, os.Symlink(cat, filepath.Join(filepath.Dir(terraform), "cat")))
		t.Setenv("PATH", filepath.Dir(terraform))
		require.ErrorContains(t, d.soak(t.Context(), nil), "the AWS CLI is not installed; install it: https://")
	})
}

// fakePlugin acts as the Session Manager plugin, which the AWS CLI calls. args contains the response to
// StartSession (or the name of a variable with the response), region, "StartSession", profile, the request, and the
// address of the service.
func fakePlugin(args []string) int {
	if len(args) == 1 && args[0] == "--version" {
		fmt.Println("1.2.707.0")
		return 0
	}
	var request struct{ Parameters map[string][]string }
	if len(args) != 6 || json.Unmarshal([]byte(args[4]), &request) != nil || len(request.Parameters["localPortNumber"]) != 1 {
		fmt.Fprintln(os.Stderr, "the plugin was called with", args)
		return 2
	}
	return forward(request.Parameters["localPortNumber"][0], os.Getenv("FAKE_AWS_STACK"))
}

// The AWS CLI is real; only AWS and the plugin are fakes.
func TestTunnelWithTheRealCommandLine(t *testing.T) {
	f := startAWS(t)
	stack := startStack(t)
	t.Setenv("PATH", filepath.Dir(os.Getenv("AWS_COMMAND_LINE"))+string(os.PathListSeparator)+os.Getenv("PATH"))
	linkProgram(t, addPrograms(t, nil), "session-manager-plugin")
	t.Setenv("FAKE_AWS_STACK", stack.Listener.Addr().String())

	tn, err := openTunnel(t.Context(), outputs{Settings: settings{Region: "eu-central-1"}, Instances: map[string]string{"stack": "i-1"}}, "stack", stackPort, 0)
	require.NoError(t, err)
	assert.True(t, tn.responds(t.Context()), "the stack must respond through the tunnel")
	_, port, err := net.SplitHostPort(tn.address)
	require.NoError(t, err)
	f.mu.Lock()
	assert.JSONEq(t, `{"Target":"i-1","DocumentName":"AWS-StartPortForwardingSession","Parameters":{"portNumber":["80"],"localPortNumber":["`+port+`"]}}`, f.sessions[0])
	f.denied = true // from now on
	f.mu.Unlock()
	tn.close()
	_, err = net.Dial("tcp", tn.address)
	require.Error(t, err, "the plugin must have ended")

	_, err = openTunnel(t.Context(), outputs{Settings: settings{Region: "eu-central-1"}, Instances: map[string]string{"stack": "i-1"}}, "stack", stackPort, 0)
	require.ErrorContains(t, err, "AccessDenied: the credentials lack this permission")
}
