package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fakePlugin acts as the Session Manager plugin, which the AWS command line calls. args contains the response to
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

// The AWS command line is real; only AWS and the plugin are fakes.
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
