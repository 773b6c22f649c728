// Package cluster runs the runners of a soak on Kubernetes, under the k6-operator (v1.6). It renders the TestRun from
// the plan, creates the TestRun, and follows the initializer, the runners and the starter. It reports which pod on
// which node failed, and why.
//
// The operator's stage is not enough: it is `finished` even if runners failed, and `started` while runners are paused
// forever. The package therefore reads Jobs, pods and k6's own REST API, and sets a deadline for each phase. All state
// of a run is in the cluster, so any machine can attach to a run at any time.
package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

var testRuns = schema.GroupVersionResource{Group: "k6.io", Version: "v1alpha1", Resource: "testruns"}

// A Client is a client of one cluster.
type Client struct {
	kubernetes.Interface
	Dynamic dynamic.Interface
	// Open connects to a port of a pod.
	Open func(ctx context.Context, namespace, pod string, port int) (*Forward, error)
}

// requestTimeout limits the requests of the dynamic client, and each poll of the cluster.
const requestTimeout = 30 * time.Second

// Connect returns a client with the configuration that kubectl would use: KUBECONFIG, ~/.kube/config, or the service
// account of the pod. context names a context of the kubeconfig; "" is the current one.
func Connect(context string) (*Client, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{CurrentContext: context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find a cluster: %w; set KUBECONFIG, or choose a context with --kube-context", err)
	}
	// client-go logs errors that it also returns.
	klog.SetLogger(logr.Discard())
	config.UserAgent = "sse-soak"
	config.QPS, config.Burst = 50, 100
	shortConfig := rest.CopyConfig(config)
	shortConfig.Timeout = requestTimeout
	dynamicClient, err := dynamic.NewForConfig(shortConfig)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	// This client follows logs for hours, so it has no timeout. client-go closes a connection that answers no ping.
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return &Client{Interface: typed, Dynamic: dynamicClient, Open: opener(config, typed)}, nil
}
