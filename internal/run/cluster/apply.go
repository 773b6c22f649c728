package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/plan"
)

// fieldManager is the name under which Kubernetes records that soak owns the applied fields.
const fieldManager = "sse-soak"

// Apply creates or updates the objects that stay between runs. It skips objects that this user has no permission to
// change, and returns their names: an administrator is expected to have applied them. It returns an error if a skipped
// object does not exist.
func (c *Client) Apply(ctx context.Context, setup []*unstructured.Unstructured) (skipped []string, err error) {
	for _, o := range setup {
		resource, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
		var client dynamic.ResourceInterface = c.Dynamic.Resource(resource)
		if ns := o.GetNamespace(); ns != "" {
			client = c.Dynamic.Resource(resource).Namespace(ns)
		}
		_, err := client.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
		switch {
		case apierrors.IsForbidden(err):
			if _, getErr := client.Get(ctx, o.GetName(), metav1.GetOptions{}); apierrors.IsNotFound(getErr) {
				return nil, fmt.Errorf("apply %s %s: %w; an administrator must apply the overlay once, with kubectl apply -k", o.GetKind(), o.GetName(), err)
			}
			skipped = append(skipped, o.GetKind()+" "+o.GetName())
		case err != nil:
			return nil, fmt.Errorf("apply %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return skipped, nil
}

// Await waits until all pods of a Deployment are up to date and ready. It calls report with each new reason for the
// wait. The error of a timeout contains the last reason.
func (c *Client) Await(ctx context.Context, namespace, name string, limit time.Duration, report func(string)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	reason, lastReport := ErrUnreachable.Error(), ""
	for {
		d, err := c.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			want := int32(1)
			if d.Spec.Replicas != nil {
				want = *d.Spec.Replicas
			}
			s := d.Status
			if s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == want && s.Replicas == want && s.AvailableReplicas == want {
				return nil
			}
			reason = c.unreadyReason(ctx, namespace, d.Spec.Selector)
		} else if ctx.Err() == nil {
			reason = err.Error()
		}
		if ctx.Err() == nil && reason != lastReport {
			report(fmt.Sprintf("waiting for %s: %s", name, reason))
			lastReport = reason
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return ctx.Err()
			}
			return fmt.Errorf("%s in %s was not ready after %v: %s", name, namespace, limit, reason)
		case <-time.After(pollInterval):
		}
	}
}

func (c *Client) unreadyReason(ctx context.Context, namespace string, selector *metav1.LabelSelector) string {
	pods, err := c.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(selector)})
	if err != nil {
		return err.Error()
	}
	for i := range pods.Items {
		if w := waitReason(&pods.Items[i]); w != "" {
			return fmt.Sprintf("pod %s: %s", pods.Items[i].Name, w)
		}
	}
	if len(pods.Items) == 0 {
		return "it has no pod yet"
	}
	return fmt.Sprintf("pod %s is running but not ready yet", pods.Items[0].Name)
}

// Create creates the TestRun of a launch, and the secret and the module of its pods. The TestRun owns both, so the
// cluster deletes them with the TestRun. If one of them cannot be stored, Create deletes the TestRun.
func (c *Client) Create(ctx context.Context, run *unstructured.Unstructured, l Launch) error {
	id := l.Plan.TestID
	created, err := c.Dynamic.Resource(testRuns).Namespace(run.GetNamespace()).Create(ctx, run, metav1.CreateOptions{FieldManager: fieldManager})
	switch {
	case apierrors.IsNotFound(err):
		return operatorError(run.GetNamespace(), err)
	case apierrors.IsAlreadyExists(err):
		return fmt.Errorf("the TestRun %s already exists; choose another --testid, or follow it with `soak attach %s`", run.GetName(), id)
	case err != nil:
		return fmt.Errorf("create the TestRun: %w", err)
	}
	meta := metav1.ObjectMeta{OwnerReferences: ownerReferences(created)}
	if len(l.Secrets) > 0 {
		meta.Name = tokenSecret(id)
		secret := &corev1.Secret{ObjectMeta: meta, StringData: l.Secrets}
		_, err = c.CoreV1().Secrets(run.GetNamespace()).Create(ctx, secret, metav1.CreateOptions{FieldManager: fieldManager})
	}
	if err == nil && l.Module != "" {
		meta.Name = moduleMap(id)
		module := &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{moduleKey: l.Module}}
		_, err = c.CoreV1().ConfigMaps(run.GetNamespace()).Create(ctx, module, metav1.CreateOptions{FieldManager: fieldManager})
	}
	if err != nil {
		return errors.Join(fmt.Errorf("store %s for the pods: %w", meta.Name, err), c.Delete(ctx, run.GetNamespace(), run.GetName()))
	}
	return nil
}

func ownerReferences(run *unstructured.Unstructured) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: run.GetAPIVersion(), Kind: run.GetKind(), Name: run.GetName(), UID: run.GetUID()}}
}

// OtherRuns returns the names of the TestRuns in a namespace that load the service at a URL, or whose service is
// unknown.
func (c *Client) OtherRuns(ctx context.Context, namespace, url string) (names []string, err error) {
	list, err := c.Dynamic.Resource(testRuns).Namespace(namespace).List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, operatorError(namespace, err)
	case err != nil:
		return nil, fmt.Errorf("list the TestRuns in %s: %w", namespace, err)
	}
	for i := range list.Items {
		var p plan.Plan
		if json.Unmarshal([]byte(list.Items[i].GetAnnotations()[planAnnotation]), &p) != nil || p.BackendURL == url {
			names = append(names, list.Items[i].GetName())
		}
	}
	return names, nil
}

// operatorError returns the error for a cluster without the TestRun resource or without the namespace.
func operatorError(namespace string, err error) error {
	return fmt.Errorf("the cluster has no TestRun resource, or no namespace %s: %w; install the k6-operator v1.6 (docs/distributed.md), and apply the overlay with kubectl apply -k", namespace, err)
}

// Delete removes a TestRun with all objects that it owns, and waits until its pods are deleted or ctx ends.
func (c *Client) Delete(ctx context.Context, namespace, name string) error {
	background := metav1.DeletePropagationBackground
	for {
		err := c.Dynamic.Resource(testRuns).Namespace(namespace).Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background})
		var pods *corev1.PodList
		if err == nil || apierrors.IsNotFound(err) {
			pods, err = c.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector(name)})
		}
		if err == nil && len(pods.Items) == 0 {
			return nil
		}
		if err == nil {
			err = errors.New(format.Plural(len(pods.Items), "pod still exists", "pods still exist"))
		}
		failure := fmt.Errorf("clean up the run: %[3]w; run `kubectl delete testrun -n %[1]s %[2]s`", namespace, name, err)
		if apierrors.IsForbidden(err) {
			return failure // permission errors are permanent
		}
		select {
		case <-ctx.Done():
			return failure
		case <-time.After(pollInterval):
		}
	}
}

// ErrNoRun reports that the cluster does not have the run.
var ErrNoRun = errors.New("the run was never started, or was cleaned up")

// Find reads the launch of an existing TestRun: plan, shards and length from its annotations, and the time of its
// creation. It does not check the plan.
func (c *Client) Find(ctx context.Context, namespace, id string) (l Launch, err error) {
	run, err := c.Dynamic.Resource(testRuns).Namespace(namespace).Get(ctx, Name(id), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return l, fmt.Errorf("there is no TestRun %s in %s: %w", Name(id), namespace, ErrNoRun)
	}
	if err != nil {
		return l, fmt.Errorf("find the TestRun %s: %w", Name(id), err)
	}
	annotations := run.GetAnnotations()
	if err := json.Unmarshal([]byte(annotations[planAnnotation]), &l.Plan); err != nil {
		return l, fmt.Errorf("the TestRun %s has no plan, so soak did not start it: %w", Name(id), err)
	}
	l.Shards, l.Created = annotations[shardsAnnotation], run.GetCreationTimestamp().Time
	if l.Length, err = time.ParseDuration(annotations[lengthAnnotation]); err != nil {
		return l, fmt.Errorf("the TestRun %s has no length, so soak did not start it: %w", Name(id), err)
	}
	return l, nil
}

func selector(name string) string {
	return labels.SelectorFromSet(labels.Set{"app": "k6", "k6_cr": name}).String()
}
