package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/plan"
)

// Manifests are the objects of an overlay of infra/k6-operator.
type Manifests struct {
	TestRun *unstructured.Unstructured   // template that Render completes
	Setup   []*unstructured.Unstructured // objects that stay between runs: namespace, permissions, policies, bucket, backend
}

// kustomize serializes builds, because kyaml reads its global schema without a lock.
var kustomize sync.Mutex

// Build builds the overlay in a folder, as `kubectl kustomize` does.
func Build(folder string) (*Manifests, error) {
	kustomize.Lock()
	defer kustomize.Unlock()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, fmt.Errorf("build the overlay %s: %w", folder, err)
	}
	m := &Manifests{}
	for _, r := range resources.Resources() {
		text, err := r.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("build the overlay %s: %w", folder, err)
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(text); err != nil {
			return nil, fmt.Errorf("build the overlay %s: %w", folder, err)
		}
		switch {
		case o.GetKind() != "TestRun":
			m.Setup = append(m.Setup, o)
		case m.TestRun != nil:
			return nil, fmt.Errorf("the overlay %s must have one TestRun, got several", folder)
		default:
			m.TestRun = o
		}
	}
	if m.TestRun == nil {
		return nil, fmt.Errorf("the overlay %s has no TestRun", folder)
	}
	if m.TestRun.GetNamespace() == "" {
		return nil, fmt.Errorf("the overlay %s sets no namespace", folder)
	}
	return m, nil
}

// backendName is the name of the Deployment and the Service of the backend that an overlay may contain.
const backendName = "backend"

// RenewBackend changes the backend of the overlay so that Apply replaces its pod with one that has the plan's interval.
// It returns the backend's URL inside the cluster; "" if the overlay has no backend.
func (m *Manifests) RenewBackend(p plan.Plan) (url string, err error) {
	deployment, service := m.find("Deployment", backendName), m.find("Service", backendName)
	if deployment == nil || service == nil {
		return "", nil
	}
	d, pod := &rendering{Unstructured: deployment}, []string{"spec", "template", "spec", "containers"}
	d.set(p.TestID, "spec", "template", "metadata", "annotations", "sse-soak/testid")
	containers := d.list(pod...)
	if len(containers) == 0 {
		return "", errors.Join(errors.New("render the backend: it has no container"), d.err)
	}
	container, ok := containers[0].(map[string]any)
	if !ok {
		return "", errors.New("render the backend: its container is malformed")
	}
	const interval = "NOOP_INTERVAL"
	env := []any{map[string]any{"name": interval, "value": strconv.FormatFloat(p.NoopInterval, 'f', -1, 64)}}
	list, _ := container["env"].([]any)
	for _, e := range list {
		if entry, ok := e.(map[string]any); ok && entry["name"] != interval {
			env = append(env, e)
		}
	}
	container["env"] = env
	d.set(containers, pod...)
	ports, _, err := unstructured.NestedSlice(service.Object, "spec", "ports")
	if err != nil || len(ports) == 0 {
		return "", errors.Join(errors.New("render the backend: its service has no port"), err)
	}
	first, _ := ports[0].(map[string]any)
	return fmt.Sprintf("http://%s.%s.svc:%v", backendName, service.GetNamespace(), first["port"]), d.err
}

// OmitBackend removes the backend of the overlay from the objects to apply. Applying the backend could restart it,
// which would disconnect the streams of another run.
func (m *Manifests) OmitBackend() {
	m.Setup = slices.DeleteFunc(m.Setup, func(o *unstructured.Unstructured) bool { return o.GetName() == backendName })
}

func (m *Manifests) find(kind, name string) *unstructured.Unstructured {
	for _, o := range m.Setup {
		if o.GetKind() == kind && o.GetName() == name {
			return o
		}
	}
	return nil
}

func restarts(pod *corev1.Pod) (n int32) {
	for _, c := range pod.Status.ContainerStatuses {
		n += c.RestartCount
	}
	return n
}

// Restarts returns a sentence if the target's pod was restarted or replaced; "" otherwise. before is an earlier state
// of the pod. at is the last time that a container of the pod ended; zero if unknown.
func (c *Client) Restarts(ctx context.Context, before *corev1.Pod) (text string, at time.Time) {
	pod, err := c.CoreV1().Pods(before.Namespace).Get(ctx, before.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("the target's pod %s was replaced during the run", before.Name), at
	case err != nil:
		return "", at // a failed request to the API server is no evidence of a fault of the target
	}
	n := restarts(pod) - restarts(before)
	if n <= 0 {
		return "", at
	}
	reason := ""
	for _, s := range pod.Status.ContainerStatuses {
		if t := s.LastTerminationState.Terminated; t != nil {
			at = t.FinishedAt.Time
			reason = fmt.Sprintf(", last at %s UTC (%s, exit code %d)", t.FinishedAt.UTC().Format("15:04:05"), t.Reason, t.ExitCode)
		}
	}
	return fmt.Sprintf("the target's %s was restarted %s%s", location(pod), format.Count(int(n), "time"), reason), at
}
