package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
)

// A Forward is a port of this machine that leads to a port of a pod. Network policies and firewalls of the cluster do
// not apply to its connections, which pass through the API server and the kubelet.
type Forward struct {
	Address string      // HOST:PORT on this machine
	Pod     *corev1.Pod // of the service; nil: opened by name
	stop    func()
}

// Close ends the forwarding.
func (f *Forward) Close() {
	if f.stop != nil {
		f.stop()
	}
}

func opener(config *rest.Config, client kubernetes.Interface) func(context.Context, string, string, int) (*Forward, error) {
	return func(ctx context.Context, namespace, pod string, port int) (*Forward, error) {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		transport, upgrader, err := spdy.RoundTripperFor(config)
		if err != nil {
			return nil, err
		}
		endpoint := client.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("portforward").URL()
		dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, endpoint)
		stop, ready := make(chan struct{}), make(chan struct{})
		// Errors of single connections are discarded, because their clients receive an end of file.
		forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{"0:" + strconv.Itoa(port)}, stop, ready, io.Discard, io.Discard)
		if err != nil {
			return nil, err
		}
		ended := make(chan error, 1)
		go func() { ended <- forwarder.ForwardPorts() }()
		halt := func() { close(stop); <-ended }
		select {
		case <-ready:
		case err := <-ended:
			if err == nil {
				err = errors.New("the connection was closed")
			}
			return nil, fmt.Errorf("reach port %d of pod %s: %w", port, pod, err)
		case <-ctx.Done():
			go halt() // in the background, because halt waits for the dial, which may hang
			return nil, fmt.Errorf("reach port %d of pod %s: %w", port, pod, ctx.Err())
		}
		ports, err := forwarder.GetPorts()
		if err != nil {
			halt()
			return nil, err
		}
		return &Forward{Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(int(ports[0].Local))), stop: halt}, nil
	}
}

// A Service is a port of a Kubernetes Service.
type Service struct {
	Namespace, Name string
	Port            int
}

// ServiceOf returns the service of the cluster that a URL names, such as http://backend.sse-soak.svc:8080. ok is false
// for any other URL.
func ServiceOf(text string) (s Service, ok bool) {
	u, err := url.Parse(text)
	if err != nil {
		return s, false
	}
	host := strings.TrimSuffix(strings.TrimSuffix(u.Hostname(), "."), ".cluster.local")
	parts := strings.Split(host, ".")
	if len(parts) != 3 || parts[2] != "svc" {
		return s, false
	}
	s = Service{Namespace: parts[1], Name: parts[0], Port: map[string]int{"http": 80, "https": 443}[u.Scheme]}
	if p := u.Port(); p != "" {
		s.Port, _ = strconv.Atoi(p)
	}
	return s, true
}

// OpenService connects to a ready pod behind the service. The error is a NotReadyError if there is no such pod.
func (c *Client) OpenService(ctx context.Context, s Service) (*Forward, error) {
	service, err := c.CoreV1().Services(s.Namespace).Get(ctx, s.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("find the service %s in %s: %w", s.Name, s.Namespace, err)
	}
	pods, err := c.CoreV1().Pods(s.Namespace).List(ctx, metav1.ListOptions{LabelSelector: labels.SelectorFromSet(service.Spec.Selector).String()})
	if err != nil {
		return nil, fmt.Errorf("find the pods of the service %s: %w", s.Name, err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if port := targetPort(service, pod, s.Port); isReady(pod) && port != 0 {
			forward, err := c.Open(ctx, s.Namespace, pod.Name, port)
			if err == nil {
				forward.Pod = pod
			}
			return forward, err
		}
	}
	return nil, NotReadyError{s}
}

// A NotReadyError reports that a service has no ready pod for a port.
type NotReadyError struct{ Service }

func (e NotReadyError) Error() string {
	return fmt.Sprintf("no pod of the service %s in %s is ready to answer on port %d", e.Name, e.Namespace, e.Port)
}

// targetPort returns the pod's port behind a port of the service; 0 if the service or the pod has no such port.
func targetPort(service *corev1.Service, pod *corev1.Pod, port int) int {
	for _, p := range service.Spec.Ports {
		switch {
		case int(p.Port) != port:
		case p.TargetPort.Type == intstr.Int && p.TargetPort.IntVal == 0:
			return port
		case p.TargetPort.Type == intstr.Int:
			return int(p.TargetPort.IntVal)
		default:
			for _, c := range pod.Spec.Containers {
				for _, containerPort := range c.Ports {
					if containerPort.Name == p.TargetPort.StrVal {
						return int(containerPort.ContainerPort)
					}
				}
			}
		}
	}
	return 0
}

// isReady reports whether a pod is ready, and is not being deleted.
func isReady(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
