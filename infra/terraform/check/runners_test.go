//go:build aws

package check

import (
	"crypto/sha256"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/untested"
)

// k3sInstaller stands in for k3s's own, which cannot be had without the internet: it leaves
// a k3s that writes down how it is called.
const k3sInstaller = `
echo "$INSTALL_K3S_VERSION $K3S_TOKEN $K3S_URL $INSTALL_K3S_EXEC" >/run/k3s-installed
mkdir -p /etc/rancher/k3s
echo "server: https://127.0.0.1:6443" >/etc/rancher/k3s/k3s.yaml
printf '#!/bin/sh\necho "$*" >>/run/k3s-called\n' >/usr/local/bin/k3s
chmod +x /usr/local/bin/k3s
`

// TestRunners boots the hosts of the runners with a stand-in for k3s, and looks at what they load,
// store and call. The last agent is there first: it has to wait for the token that the server makes.
func TestRunners(t *testing.T) {
	needsMachines(t)
	untested.Note(t, "k3s and the k6-operator themselves on such a host")
	const token, kubeconfig = "/sse-soak/runners/token", "/sse-soak/runners/kubeconfig"
	runnerImage, err := os.ReadFile("../tests/runner-image.txt") // what Terraform took the sum of
	require.NoError(t, err)
	here := newSite(t)
	c := here.cloud(t, token, kubeconfig, "/sse-soak/runners/status-0", "/sse-soak/runners/status-2")
	c.files = map[string]string{
		fmt.Sprintf("%s/images/runner-%.16s.tar.gz", bucketHost, fmt.Sprintf("%x", sha256.Sum256(runnerImage))): string(runnerImage),
		githubHost + "/k3s-io/k3s/v1.35.3+k3s1/install.sh":                                                      k3sInstaller,
		githubHost + "/grafana/k6-operator/v1.6.0/bundle.yaml":                                                  "kind: Bundle\n",
	}
	data := userData(t)
	agent := here.boot(t, c, data["runners.agents"], map[string][]byte{}, "")
	server := here.boot(t, c, data["runners.server"], map[string][]byte{}, "")
	for _, status := range []string{"/sse-soak/runners/status-0", "/sse-soak/runners/status-2"} {
		await(t, 8*time.Minute, "a host says nothing", server, func() bool { return !strings.HasPrefix(c.parameter(status), "pending") })
		require.Equal(t, "ready "+instanceID, c.parameter(status))
	}
	assert.Empty(t, c.refused)
	joined := c.parameter(token)
	assert.Regexp(t, regexp.MustCompile(`^[0-9a-f]{64}$`), joined)
	assert.Equal(t, "# "+instanceID+"\nserver: https://203.0.113.20:6443\n", c.parameter(kubeconfig), "operators reach it by the public address")
	assert.Contains(t, server.sh("cat /run/k3s-installed"), "v1.35.3+k3s1 "+joined+"  server --tls-san=203.0.113.20")
	assert.Contains(t, server.sh("cat /run/k3s-called"), "kubectl apply --server-side -f /opt/soak/operator.yaml")
	assert.Equal(t, "v1.35.3+k3s1 "+joined+" https://10.20.0.10:6443 agent --node-ip=10.20.0.11", agent.sh("cat /run/k3s-installed"))
	for _, m := range []*machine{server, agent} {
		assert.Equal(t, string(runnerImage), m.sh("cat /var/lib/rancher/k3s/agent/images/runner.tar.gz")+"\n")
		assert.Equal(t, "1024\t65535", m.sh("cat /proc/sys/net/ipv4/ip_local_port_range"))
		assert.Equal(t, "active", m.sh("systemctl is-active soak-end.timer"))
		m.asksForNotices()
		m.installsNothingElse()
		m.tellsOfItself()
	}
	areFound(t, map[string]string{"runner-1": server.ip, "runner-3": agent.ip})
}
