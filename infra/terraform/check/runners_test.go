//go:build aws

package check

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/untested"
)

// k3s is a script that replaces k3s. It records its arguments and notifies systemd that it is ready.
const k3s = `#!/bin/bash
if [[ $1 == kubectl ]]; then echo "$*" >>/run/k3s-called; exit; fi
echo "$K3S_TOKEN $*" >/run/k3s-installed
mkdir -p /etc/rancher/k3s
echo "server: https://127.0.0.1:6443" >/etc/rancher/k3s/k3s.yaml
exec python3 -c 'import os, signal, socket
name = os.environ["NOTIFY_SOCKET"]
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"READY=1", "\0" + name[1:] if name[0] == "@" else name)
signal.pause()'
`

// bootRunners boots the hosts of the runners with a stand-in for k3s, and checks the files, the parameters and the
// calls. The agent starts before the server, so the agent must wait for the token that the server creates.
func bootRunners(t *testing.T, site *site, userData map[string]string) {
	t.Helper()
	untested.Note(t, "k3s and the k6-operator on the runners' hosts")
	const (
		token, kubeconfig         = "/sse-soak/runners/token", "/sse-soak/runners/kubeconfig"
		serverStatus, agentStatus = "/sse-soak/runners/status-0", "/sse-soak/runners/status-2"
	)
	folder := t.TempDir()
	for name, text := range map[string]string{"k3s": k3s, "operator.yaml": "kind: Bundle\n", "image-k6.tar.gz": "an image\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	c := site.cloud(t, token, kubeconfig, serverStatus, agentStatus, endParameter)
	objects, agentData := bucketObjects(t, userData["runners.agents"], "agents", folder)
	_, serverData := bucketObjects(t, userData["runners.server"], "server", folder)
	c.files = objects
	agent := site.boot(t, c, agentData)
	server := site.boot(t, c, serverData)
	for status, m := range map[string]*machine{serverStatus: server, agentStatus: agent} {
		await(t, 8*time.Minute, "the host did not report", m, func() bool { return !strings.HasPrefix(c.parameter(status), "pending") })
		require.Equal(t, "ready "+instanceID, c.parameter(status))
	}
	assert.Empty(t, c.rejections)
	clusterToken := c.parameter(token)
	assert.Regexp(t, regexp.MustCompile(`^[0-9a-f]{64}$`), clusterToken)
	assert.Equal(t, "# "+instanceID+"\nserver: https://127.0.0.1:6443\n", c.parameter(kubeconfig), "the first line must name the host that stored the parameter")
	assert.Contains(t, server.sh("cat /run/k3s-installed"), clusterToken+" server --disable=traefik")
	assert.Contains(t, server.sh("cat /run/k3s-called"), "kubectl apply --server-side -f /opt/soak/files/operator.yaml")
	assert.Equal(t, clusterToken+" agent --server=https://10.20.0.10:6443 --node-ip=10.20.0.11", agent.sh("cat /run/k3s-installed"))
	for _, m := range []*machine{server, agent} {
		assert.Equal(t, "an image", m.sh("cat /var/lib/rancher/k3s/agent/images/image-k6.tar.gz"))
		assert.Equal(t, "1024\t65535", m.sh("cat /proc/sys/net/ipv4/ip_local_port_range"))
		assert.Equal(t, "active", m.sh("systemctl is-active soak-end.timer"))
		m.checkNotices()
		m.checkUpdatesDisabled()
		m.checkExporter()
	}
	checkDiscovery(t, map[string]string{"runner-1": server.ip, "runner-3": agent.ip})
	agent.checkFailedSetup(c, agentStatus)
	agent.checkExtension(c)
	agent.checkEnd()
}
