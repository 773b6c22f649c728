package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/terminal"
	"github.com/sse-soak/sse-soak/test/untested"
)

// smallSettings describes a deployment whose only resource takes some seconds and needs no provider.
const smallSettings = `
locals {
  settings = {
    name = "sse-soak", region = "eu-central-1", owner = "", connections = 1200, noop_interval_seconds = 15, ttl_minutes = 180
    retention_days = 30, subnet_id = null, tags = {}, disk_gib = 50, hosts = {}, architectures = {}, runner_architecture = "amd64"
  }
}

resource "terraform_data" "slow" {
  provisioner "local-exec" {
    command = "touch started && sleep 4"
  }
}

output "deployment" {
  value = {
    settings = local.settings, bucket = "sse-soak-123", backend_url = "http://10.20.0.10", control_url = "http://10.20.0.10:7070", public_url = ""
    secrets_parameter = "/sse-soak/stack/secrets", kubeconfig_parameter = "/sse-soak/runners/kubeconfig", end_parameter = "/sse-soak/end"
    status_parameters = { "/sse-soak/stack/status" = "i-1", "/sse-soak/runners/status-0" = "i-2" }
    instances         = { stack = "i-1", runner-1 = "i-2" }
  }
}
`

// A session is soak-aws on its own terminal.
type session struct {
	cmd      *exec.Cmd
	keyboard *os.File
	screen   *terminal.Output
	complete chan struct{} // closed when screen has the complete output
}

// startOnTerminal starts soak-aws with the real terraform.
func startOnTerminal(t *testing.T, args ...string) session {
	t.Helper()
	if _, err := exec.LookPath("terraform"); err != nil {
		untested.Skip(t, "Ctrl-C during terraform: terraform is not installed here")
	}
	program := linkProgram(t, t.TempDir(), "soak-aws")
	keyboard, device := terminal.Open(t)
	defer device.Close()
	s := session{exec.Command(program, args...), keyboard, new(terminal.Output), make(chan struct{})}
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = device, device, device
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, s.cmd.Start())
	go func() {
		defer close(s.complete)
		_, _ = io.Copy(s.screen, keyboard) // ends with EIO when the last process has closed the terminal
	}()
	return s
}

func (s session) await(t *testing.T, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, 3*time.Minute, 20*time.Millisecond, "the condition must be met; the screen shows: %s", s.screen)
}

func (s session) hasShown(text string) func() bool {
	return func() bool { return strings.Contains(s.screen.String(), text) }
}

// interrupt presses Ctrl-C once and waits for the end of soak-aws.
func (s session) interrupt(t *testing.T) {
	t.Helper()
	_, err := s.keyboard.Write([]byte{3})
	require.NoError(t, err)
	_ = s.cmd.Wait()
	<-s.complete
	require.Equal(t, 2, s.cmd.ProcessState.ExitCode(), s.screen)
	require.NotContains(t, s.screen.String(), "Two interrupts", "terraform must receive one SIGINT; after a second one it exits without writing its state")
	require.NoError(t, s.keyboard.Close())
}

func exists(file string) func() bool {
	return func() bool {
		_, err := os.Stat(file)
		return err == nil
	}
}

func TestCtrlCDuringInit(t *testing.T) {
	startAWS(t)
	requests := make(chan struct{}, 9)
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		requests <- struct{}{}
		<-r.Context().Done()
	}))
	defer slow.Close()
	dir := t.TempDir()
	module := "module \"slow\" {\n  source = \"" + slow.URL + "/module.zip\"\n}\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.tf"), []byte(smallSettings+module), 0o600))
	s := startOnTerminal(t, "--dir", dir, "--yes", "up")
	<-requests
	s.interrupt(t)
	assert.NoFileExists(t, filepath.Join(dir, "started"))
}

// After each Ctrl-C the next command continues from the state.
func TestCtrlCAfterInit(t *testing.T) {
	untested.RequireHangups(t)
	f := startAWS(t)
	addSessions(t, startStack(t).Listener.Addr().String())
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.tf"), []byte(smallSettings), 0o600))
	started, state := filepath.Join(dir, "started"), filepath.Join(dir, "terraform.tfstate")

	s := startOnTerminal(t, "--dir", dir, "up")
	s.await(t, s.hasShown("Enter a value"))
	s.interrupt(t)
	assert.NoFileExists(t, started, "no resource may be created before the confirmation")

	s = startOnTerminal(t, "--dir", dir, "up")
	s.await(t, s.hasShown("Enter a value"))
	_, err := s.keyboard.WriteString("yes\n")
	require.NoError(t, err)
	s.await(t, exists(started))
	s.interrupt(t)
	assert.Contains(t, s.screen.String(), "Interrupt received")
	text, err := os.ReadFile(state)
	require.NoError(t, err)
	assert.Contains(t, string(text), `"type": "terraform_data"`, "the state must have the resource whose creation was interrupted")
	assert.NotContains(t, strings.Join(names(t, dir), " "), "lock.info")

	s = startOnTerminal(t, "--dir", dir, "--yes", "up")
	s.await(t, s.hasShown("waiting for the setup of 2 hosts"))
	s.interrupt(t)
	assert.Contains(t, s.screen.String(), "run `make aws-up` to complete the deployment, or `make aws-down` to remove it")

	f.mu.Lock()
	f.setReady()
	f.mu.Unlock()
	signals, program := filepath.Join(dir, "signals"), filepath.Join(dir, "soak")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\ntrap 'echo INT >>"+signals+"' INT\ntrap 'echo HUP >>"+signals+"; hung=1' HUP\n"+
		"echo up >>"+signals+"\nn=0; while [ -z \"$hung\" ] && [ $n -lt 300 ]; do sleep .1; n=$((n+1)); done\nsleep 1\nexit 2\n"), 0o755))
	s = startOnTerminal(t, "--dir", dir, "--soak", program, "soak")
	s.await(t, exists(signals))
	s.interrupt(t)
	assert.ElementsMatch(t, []string{"up", "INT", "HUP"}, lines(t, signals), "soak must receive one SIGINT; after a second one it kills the runners")
	assert.Contains(t, s.screen.String(), "To continue an interrupted soak: bin/soak-aws attach ")
}

// Under nohup, soak ignores SIGHUP. A second SIGINT would make soak kill the runners.
func TestCtrlCUnderNohupReachesSoakOnce(t *testing.T) {
	startAWS(t).setReady()
	addSessions(t, startStack(t).Listener.Addr().String())
	dir := newAppliedDeployment(t).dir
	signals, program := filepath.Join(dir, "signals"), filepath.Join(dir, "soak")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\ntrap 'echo INT >>"+signals+"; stopped=1' INT\necho $$ >>"+signals+"\n"+
		"n=0; while [ -z \"$stopped\" ] && [ $n -lt 300 ]; do sleep .1; n=$((n+1)); done\nsleep 1\nexit 2\n"), 0o755))
	cmd := exec.Command("nohup", linkProgram(t, t.TempDir(), "soak-aws"), "--dir", dir, "--soak", program, "soak")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var output terminal.Output
	cmd.Stdout, cmd.Stderr = &output, &output
	require.NoError(t, cmd.Start())
	pid := 0
	session{}.await(t, func() bool {
		text, _ := os.ReadFile(signals)
		_, err := fmt.Sscan(string(text), &pid)
		return err == nil
	})
	group, err := syscall.Getpgid(pid)
	require.NoError(t, err)
	// Two signals at the same time may arrive as one, so the number of signals alone proves nothing.
	assert.Equal(t, pid, group, "soak must have its own process group, which a Ctrl-C does not reach directly")
	require.NoError(t, syscall.Kill(-cmd.Process.Pid, syscall.SIGINT)) // as a terminal does
	_ = cmd.Wait()
	require.Equal(t, 2, cmd.ProcessState.ExitCode(), output.String())
	assert.Equal(t, []string{fmt.Sprint(pid), "INT"}, lines(t, signals))
}

// If the terminal is closed, terraform completes its operation. The state has all resources, and no lock remains.
func TestTerraformSurvivesClosedTerminal(t *testing.T) {
	startAWS(t)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.tf"), []byte(smallSettings), 0o600))
	s := startOnTerminal(t, "--dir", dir, "--yes", "up")
	s.await(t, exists(filepath.Join(dir, "started")))
	require.NoError(t, s.keyboard.Close())
	s.await(t, func() bool {
		state, err := os.ReadFile(filepath.Join(dir, "terraform.tfstate"))
		return err == nil && strings.Contains(string(state), "terraform_data") && !strings.Contains(strings.Join(names(t, dir), " "), "lock.info")
	})
	require.NoError(t, s.cmd.Process.Signal(os.Interrupt)) // soak-aws waits for the hosts
	_ = s.cmd.Wait()
}

func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}
