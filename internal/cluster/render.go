package cluster

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/preflight"
)

// What a TestRun carries so that any machine can attach to its run.
const (
	planAnnotation   = "sse-soak/plan"
	shardsAnnotation = "sse-soak/shards"
)

// namePrefix makes a service's name of a test id: those begin with a letter.
const namePrefix = "soak-"

// maxTestID leaves room for the operator's suffixes in a label of 63 characters.
const maxTestID = 40

var testID = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

// CheckTestID says in a sentence why a test id cannot name objects of a cluster.
func CheckTestID(id string) error {
	if len(id) > maxTestID || !testID.MatchString(id) {
		return fmt.Errorf("TESTID is %q: on Kubernetes it names objects, and may hold only small letters, digits and '-', at most %d", id, maxTestID)
	}
	return nil
}

// Name is the name of the TestRun of a test.
func Name(id string) string { return namePrefix + id }

// tokenSecret is the name of the secret with BACKEND_TOKEN.
func tokenSecret(id string) string { return Name(id) + "-token" }

// Render fills the plan into the TestRun: name, parallelism, environment, output, memory. shards is
// the URL that runners write to, as they reach it.
func (m *Manifests) Render(p plan.Plan, shards string, token bool) error {
	run := m.TestRun
	run.SetName(Name(p.TestID))
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	notes := run.GetAnnotations()
	if notes == nil {
		notes = map[string]string{}
	}
	notes[planAnnotation], notes[shardsAnnotation] = string(text), shards
	run.SetAnnotations(notes)
	args, err := withOutput(run, shards)
	if err != nil {
		return err
	}
	for _, set := range []struct {
		value any
		path  []string
	}{{int64(p.Runners), []string{"parallelism"}}, {args, []string{"args"}}} {
		if err := unstructured.SetNestedField(run.Object, set.value, append([]string{"spec"}, set.path...)...); err != nil {
			return fmt.Errorf("render the TestRun: %w", err)
		}
	}
	for _, pod := range []string{"initializer", "runner"} {
		if err := setEnvironment(run, pod, p.Environment()); err != nil {
			return err
		}
	}
	if token {
		if err := addSecret(run, tokenSecret(p.TestID)); err != nil {
			return err
		}
	}
	return raiseMemory(run, runnerMemory(p))
}

// withOutput is the TestRun's args, with the place of the shards put into them.
func withOutput(run *unstructured.Unstructured, shards string) ([]any, error) {
	args, _, err := unstructured.NestedStringSlice(run.Object, "spec", "args")
	if err != nil {
		return nil, fmt.Errorf("render the TestRun: %w", err)
	}
	const output = "soak="
	i := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, output) })
	if i < 0 {
		i = len(args) + 1
		args = append(args, "--out", output)
	}
	args[i] = output + shards
	out := make([]any, len(args))
	for n, a := range args {
		out[n] = a
	}
	return out, nil
}

// Output is the place for shards that the overlay names, "" for none.
func (m *Manifests) Output() string {
	args, _, _ := unstructured.NestedStringSlice(m.TestRun.Object, "spec", "args") // what is malformed Render says
	for _, a := range args {
		if _, place, ok := strings.Cut(a, "soak="); ok && strings.Contains(place, "://") {
			return place
		}
	}
	return ""
}

// setEnvironment sets variables of a pod and leaves the others as they are.
func setEnvironment(run *unstructured.Unstructured, pod string, values map[string]string) error {
	list, _, err := unstructured.NestedSlice(run.Object, "spec", pod, "env")
	if err != nil {
		return fmt.Errorf("render the TestRun: spec.%s.env: %w", pod, err)
	}
	list = slices.DeleteFunc(list, func(e any) bool {
		entry, ok := e.(map[string]any)
		name, _ := entry["name"].(string)
		_, ours := values[name]
		return ok && ours
	})
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		list = append(list, map[string]any{"name": name, "value": values[name]})
	}
	return unstructured.SetNestedSlice(run.Object, list, "spec", pod, "env")
}

// addSecret gives the runners what a secret holds. Not the initializer: it would show the values
// as arguments of `k6 archive`.
func addSecret(run *unstructured.Unstructured, name string) error {
	list, _, err := unstructured.NestedSlice(run.Object, "spec", "runner", "envFrom")
	if err != nil {
		return fmt.Errorf("render the TestRun: spec.runner.envFrom: %w", err)
	}
	list = append(list, map[string]any{"secretRef": map[string]any{"name": name}})
	return unstructured.SetNestedSlice(run.Object, list, "spec", "runner", "envFrom")
}

// runnerMemory is what one runner of the plan may take, and half as much again, in bytes.
func runnerMemory(p plan.Plan) int64 {
	share := p
	share.Connections, share.Runners = (p.Connections-1)/p.Runners+1, 1
	return int64(preflight.Memory(share, preflight.Services{})) * 3 / 2
}

// raiseMemory raises the runners' request and limit to need, if they are less.
func raiseMemory(run *unstructured.Unstructured, need int64) error {
	quantity := resource.NewQuantity((need>>20+1)<<20, resource.BinarySI)
	for _, kind := range []string{"requests", "limits"} {
		path := []string{"spec", "runner", "resources", kind, "memory"}
		text, there, err := unstructured.NestedString(run.Object, path...)
		if err != nil {
			return fmt.Errorf("render the TestRun: %w", err)
		}
		if there {
			have, err := resource.ParseQuantity(text)
			if err != nil {
				return fmt.Errorf("render the TestRun: the %s of the runners' memory, %q: %w", kind, text, err)
			}
			if have.Cmp(*quantity) >= 0 {
				continue
			}
		}
		if err := unstructured.SetNestedField(run.Object, quantity.String(), path...); err != nil {
			return fmt.Errorf("render the TestRun: %w", err)
		}
	}
	return nil
}
