package cluster

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Manifests are the objects of an overlay of infra/k6-operator.
type Manifests struct {
	TestRun *unstructured.Unstructured   // template that Render completes
	Setup   []*unstructured.Unstructured // objects that stay between runs: namespace, rights, policies, bucket, backend
}

// Build builds the overlay in a folder, as `kubectl kustomize` does.
func Build(folder string) (*Manifests, error) {
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
			return nil, fmt.Errorf("the overlay %s must have one TestRun, got two", folder)
		default:
			m.TestRun = o
		}
	}
	if m.TestRun == nil {
		return nil, fmt.Errorf("the overlay %s has no TestRun", folder)
	}
	if m.TestRun.GetNamespace() == "" {
		return nil, errors.New("the overlay sets no namespace")
	}
	return m, nil
}
