package run

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/sse-soak/sse-soak/internal/host/process"
)

// ControlCommand is the command of soak that runs the reference server of the control group. The server uses the
// listening socket that the command inherits.
const ControlCommand = "control"

const noControl = "no control group, so only stalls of the runners show delays of the load generator"

// serveControl starts the reference server of the control group in a separate process, so that a stall of a runner does
// not affect the server. It sets the server's URL in the plan, unless the plan has the URL of another reference server.
// In that case, only a part starts a server. A failed start causes only a warning.
func (d *local) serveControl() {
	if d.Executable == "" || d.Plan.Control == 0 || d.Plan.ControlURL != "" && d.runnerNumber == 0 {
		return
	}
	url, err := d.startControl()
	switch {
	case err != nil && d.Plan.ControlURL != "":
		d.warn(fmt.Sprintf("no reference server on this machine: %v", err))
	case err != nil:
		d.warn(fmt.Sprintf("%s: %v", noControl, err))
	case d.runnerNumber > 0:
		fmt.Fprintf(d.Stdout, "reference server of the control group: %s\n", url)
	}
	if d.Plan.ControlURL == "" {
		d.Plan.ControlURL = url
	}
}

// startControl starts the reference server at CONTROL_LISTEN, and returns its URL on this machine.
func (d *local) startControl() (url string, err error) {
	listener, err := net.Listen("tcp", d.ControlListen)
	if err != nil {
		return "", fmt.Errorf("CONTROL_LISTEN: %w; set it to a free address of this machine", err)
	}
	defer listener.Close()
	socket, err := listener.(*net.TCPListener).File()
	if err != nil {
		return "", err
	}
	defer socket.Close()
	d.control, err = process.Start(process.Spec{
		Name: "reference", Path: d.Executable, Args: []string{ControlCommand}, Env: os.Environ(),
		Log: filepath.Join(string(d.dir), "reference.log"), Extra: []*os.File{socket}, OrphanSignal: syscall.SIGKILL, CPUs: d.runnerCPUs,
	})
	if err != nil {
		return "", err
	}
	host, port, err := net.SplitHostPort(listener.Addr().String())
	if ip := net.ParseIP(host); ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port), err
}

func (d *local) stopControl(force context.Context) {
	if d.control != nil {
		d.control.Stop(force, syscall.SIGTERM, time.Second)
	}
}

// createControl creates the reference server in the cluster. If that fails, the run continues without a control group.
func (d *kubernetes) createControl(ctx context.Context) {
	if !d.startReference {
		return
	}
	if err := d.client.CreateControl(ctx, d.manifests.TestRun, d.Plan.TestID); err != nil {
		d.warn(fmt.Sprintf("%s: %v", noControl, err))
	}
}
