package cluster

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// The label and the port of the pod that runs the reference server of a run's control group.
// infra/k6-operator/base/network.yaml lets runners reach pods with this label.
const (
	controlLabel = "soak-control"
	controlPort  = 7070
)

func controlName(id string) string { return Name(id) + "-control" }

// ControlURL returns the URL at which runners reach the reference server of a run.
func ControlURL(namespace, id string) string {
	return fmt.Sprintf("http://%s.%s.svc:%d", controlName(id), namespace, controlPort)
}

// CreateControl creates the reference server of a run's control group, with the image of its runners. The pod prefers
// a node without runners. The TestRun owns the server, so the cluster deletes both together.
func (c *Client) CreateControl(ctx context.Context, run *unstructured.Unstructured, id string) error {
	current, err := c.Dynamic.Resource(testRuns).Namespace(run.GetNamespace()).Get(ctx, run.GetName(), metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("find the TestRun %s: %w", run.GetName(), err)
	}
	labels := map[string]string{"app.kubernetes.io/name": controlLabel, "sse-soak/testid": id}
	meta := metav1.ObjectMeta{Name: controlName(id), Namespace: run.GetNamespace(), Labels: labels, OwnerReferences: ownerReferences(current)}
	_, err = c.AppsV1().Deployments(meta.Namespace).Create(ctx, &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: controlPod(run)},
	}}, metav1.CreateOptions{FieldManager: fieldManager})
	_, serviceErr := c.CoreV1().Services(meta.Namespace).Create(ctx, &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
		Selector: labels, Ports: []corev1.ServicePort{{Port: controlPort, TargetPort: intstr.FromInt32(controlPort)}},
	}}, metav1.CreateOptions{FieldManager: fieldManager})
	return errors.Join(err, serviceErr)
}

func controlPod(run *unstructured.Unstructured) corev1.PodSpec {
	runnerField := func(name string) string {
		value, _, _ := unstructured.NestedString(run.Object, "spec", "runner", name)
		return value
	}
	enabled, disabled, user, grace := true, false, int64(65532), int64(1)
	pod := corev1.PodSpec{
		AutomountServiceAccountToken: &disabled, TerminationGracePeriodSeconds: &grace,
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &enabled, RunAsUser: &user, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Containers: []corev1.Container{{
			Name: "control", Image: runnerField("image"), ImagePullPolicy: corev1.PullPolicy(runnerField("imagePullPolicy")),
			Command: []string{"soak", "control", "--listen", fmt.Sprintf("0.0.0.0:%d", controlPort)},
			Ports:   []corev1.ContainerPort{{Name: "control", ContainerPort: controlPort}},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20m"), corev1.ResourceMemory: resource.MustParse("96Mi")},
				Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("96Mi")},
			},
			SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &disabled, ReadOnlyRootFilesystem: &enabled, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
		}},
		// A preference also keeps later runners off this node: the scheduler applies it in both directions.
		Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
			Weight: 100, PodAffinityTerm: corev1.PodAffinityTerm{
				TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "k6", "runner": "true"}},
			},
		}}}},
	}
	secrets, _, _ := unstructured.NestedSlice(run.Object, "spec", "runner", "imagePullSecrets")
	for _, s := range secrets {
		if entry, ok := s.(map[string]any); ok {
			name, _ := entry["name"].(string)
			pod.ImagePullSecrets = append(pod.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
		}
	}
	return pod
}
