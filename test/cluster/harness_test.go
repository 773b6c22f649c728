//go:build k8s

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/sse-soak/sse-soak/internal/run/cluster"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/terminal"
)

const (
	namespace = "sse-soak"
	// timeout limits each wait of these tests.
	timeout = 3 * time.Minute
)

// A kube is a client of the cluster with the rights of an administrator. The soaks of these tests use a service
// account.
type kube struct {
	*cluster.Client
	config string // path of the kubeconfig of the service account `soak`
}

// connect applies the setup of the overlay local, and returns a client of the cluster.
func connect(t *testing.T) *kube {
	t.Helper()
	client, err := cluster.Connect("")
	require.NoError(t, err, "these tests need a cluster; docs/distributed.md describes its setup")
	manifests, err := cluster.Build("../../infra/k6-operator/overlays/local")
	require.NoError(t, err)
	_, err = client.Apply(t.Context(), manifests.Setup)
	require.NoError(t, err)
	k := &kube{Client: client}
	k.config = k.soakConfig(t)
	return k
}

// soakConfig returns the path of a kubeconfig with a token of the service account.
func (k *kube) soakConfig(t *testing.T) string {
	t.Helper()
	hour := int64(3600)
	token, err := k.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), "soak",
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &hour}}, metav1.CreateOptions{})
	require.NoError(t, err)
	admin, err := clientcmd.NewDefaultClientConfigLoadingRules().Load()
	require.NoError(t, err)
	require.NoError(t, clientcmdapi.FlattenConfig(admin))
	current := admin.Contexts[admin.CurrentContext]
	require.NotNil(t, current)
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = admin.Clusters[current.Cluster]
	config.AuthInfos["soak"] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "soak", Namespace: namespace}
	config.CurrentContext = "c"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, path))
	return path
}

// A soak is a process of bin/soak.
type soak struct {
	process *exec.Cmd
	testid  string
	out     string
	buffer  terminal.Output
}

// soak starts a soak of 4 × 25 streams for 40 s, unless args change the numbers.
func (k *kube) soak(t *testing.T, name string, args ...string) *soak {
	t.Helper()
	return k.run(t, name, append([]string{"--connections", "100", "--runners", "4", "--noop-interval", "1"}, args...)...)
}

func (k *kube) run(t *testing.T, name string, args ...string) *soak {
	t.Helper()
	return k.command(t, t.TempDir(), append([]string{"run", "--on", "k8s", "--seconds", "40", "--testid", newID(name)}, args...)...)
}

func newID(name string) string { return fmt.Sprintf("e2e-%s-%d", name, time.Now().Unix()%1e6) }

// hostAddress returns the address that this machine uses to reach the node of the cluster.
func (k *kube) hostAddress(t *testing.T) string {
	t.Helper()
	nodes, err := k.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	node := ""
	for _, a := range nodes.Items[0].Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			node = a.Address
		}
	}
	conn, err := net.Dial("udp", net.JoinHostPort(node, "9")) // sends no packet
	require.NoError(t, err)
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).IP.String()
}

// command starts bin/soak with the service account. soak writes its results to the folder out.
func (k *kube) command(t *testing.T, out string, args ...string) *soak {
	t.Helper()
	binary, err := filepath.Abs("../../bin/soak")
	require.NoError(t, err)
	s := &soak{process: exec.Command(binary, append(args, "--out", out)...), out: out, testid: args[len(args)-1]}
	if i := slices.Index(args, "--testid"); i >= 0 {
		s.testid = args[i+1]
	}
	s.process.Env = append(os.Environ(), "KUBECONFIG="+k.config)
	s.process.Stdout, s.process.Stderr = &s.buffer, &s.buffer
	require.NoError(t, s.process.Start())
	t.Cleanup(func() {
		if s.process.ProcessState == nil {
			_ = s.process.Process.Kill()
			_ = s.process.Wait()
		}
	})
	return s
}

func (s *soak) output() string { return s.buffer.String() }

func (s *soak) wait(t *testing.T) int {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- s.process.Wait() }()
	select {
	case err := <-done:
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			require.NoError(t, err)
		}
		t.Log(s.output())
		return s.process.ProcessState.ExitCode()
	case <-time.After(timeout):
		require.Fail(t, "soak must exit", s.output())
		return -1
	}
}

func (s *soak) awaitOutput(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(s.output(), text) }, timeout, 100*time.Millisecond,
		"the output must contain %q: %s", text, &s.buffer)
}

func (s *soak) verdict(t *testing.T) (v verdict.Verdict) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.out, s.testid, "verdict.json"))
	require.NoError(t, err, "%s", s.output())
	require.NoError(t, json.Unmarshal(text, &v))
	return v
}

func (k *kube) runnerPod(t *testing.T, s *soak, index int) *corev1.Pod {
	t.Helper()
	pods, err := k.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: fmt.Sprintf("job-name=%s-%d", cluster.Name(s.testid), index)})
	require.NoError(t, err)
	require.Len(t, pods.Items, 1)
	return &pods.Items[0]
}

// evict evicts a pod through the API, as `kubectl drain` does.
func (k *kube) evict(ctx context.Context, pod string) error {
	return k.CoreV1().Pods(namespace).EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: namespace}})
}

// backend starts bin/backend on this machine, and returns its URL for the pods. The argument "model" starts the
// numbered model instead.
func (k *kube) backend(t *testing.T, args ...string) (url string) {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(k.hostAddress(t), "0"))
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	process := exec.Command("../../bin/backend", append(args, "--listen", address)...)
	process.Env = append(os.Environ(), "NOOP_INTERVAL=1")
	require.NoError(t, process.Start())
	t.Cleanup(func() { _ = process.Process.Kill(); _ = process.Wait() })
	require.Eventually(t, func() bool {
		connection, err := net.Dial("tcp", address)
		return err == nil && connection.Close() == nil
	}, timeout, 10*time.Millisecond, "the backend must listen on %s", address)
	return "http://" + address
}

// requireNothingLeft asserts that the cluster has no object of a run.
func (k *kube) requireNothingLeft(t *testing.T) {
	t.Helper()
	runs := metav1.ListOptions{LabelSelector: "app=k6"}
	require.Eventually(t, func() bool {
		pods, err := k.CoreV1().Pods(namespace).List(t.Context(), runs)
		require.NoError(t, err)
		jobs, err := k.BatchV1().Jobs(namespace).List(t.Context(), runs)
		require.NoError(t, err)
		services, err := k.CoreV1().Services(namespace).List(t.Context(), runs)
		require.NoError(t, err)
		references, err := k.AppsV1().Deployments(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=soak-control"})
		require.NoError(t, err)
		return len(pods.Items)+len(jobs.Items)+len(services.Items)+len(references.Items) == 0
	}, timeout, 500*time.Millisecond, "the garbage collector must remove all objects of the TestRun")
}
