package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/sse-soak/sse-soak/internal/clamp"
	"github.com/sse-soak/sse-soak/internal/host/preflight"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/run/runners"
)

// Annotations of a TestRun with which any machine can attach to its run.
const (
	planAnnotation   = "sse-soak/plan"
	shardsAnnotation = "sse-soak/shards"
	lengthAnnotation = "sse-soak/length"
)

// namePrefix makes a test id the name of a Service, which must begin with a letter.
const namePrefix = "soak-"

// maxTestID leaves room for the operator's suffixes in a label of 63 characters.
const maxTestID = 40

var testID = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

// CheckTestID returns an error if a test id cannot name objects of a cluster.
func CheckTestID(id string) error {
	if len(id) > maxTestID || !testID.MatchString(id) {
		return fmt.Errorf("TESTID must have at most %[2]d lower-case letters, digits and '-' on Kubernetes, where it names objects, got %[1]q", id, maxTestID)
	}
	return nil
}

// Name returns the name of the TestRun of a test.
func Name(id string) string { return namePrefix + id }

// tokenSecret returns the name of the secret with BACKEND_TOKEN, PUBLISH_TOKEN, SUBSCRIBE_TOKEN, and the settings of
// a Prometheus for k6.
func tokenSecret(id string) string { return Name(id) + "-token" }

// moduleMap returns the name of the config map with the module of the service.
func moduleMap(id string) string { return Name(id) + "-service" }

// moduleFolder is the folder of the service's module in the pods, and moduleKey its key in the config map.
const (
	moduleFolder = "/soak/service"
	moduleKey    = "service.js"
)

// ModulePath returns the path in the pods of a module that is a file of the user.
func ModulePath(file string) string { return path.Join(moduleFolder, filepath.Base(file)) }

// A Job is one start of the runners.
type Job struct {
	Plan     plan.Plan
	Shards   string            // URL that runners write to, as they reach it
	Secrets  map[string]string // variables that only the runners may read, such as tokens
	Module   string            // source of the module at the path that the plan names; "": the image has it
	Write    bool              // the runners write metrics to a Prometheus, which the secret names
	Settings map[string]string // settings of the script in addition to the plan
	Env      map[string]string // further variables
	Script   []string          // path from the repository's root; nil: the overlay's
	Memory   uint64            // maximum of a runner, in bytes; 0: the estimate for the plan
	Length   time.Duration     // duration of the runners
}

// Render completes the TestRun for the job: name, annotations, parallelism, arguments, script, environment, secrets,
// module, memory.
func (m *Manifests) Render(j Job) error {
	run := m.TestRun
	run.SetName(Name(j.Plan.TestID))
	if err := annotate(run, j); err != nil {
		return err
	}
	args, err := withOutput(run, j.Shards)
	if err != nil {
		return err
	}
	if j.Write || slices.Contains(args, runners.RemoteWrite) {
		args = withRemoteWrite(args, j.Plan.TestID)
	}
	if err := unstructured.SetNestedField(run.Object, int64(j.Plan.Runners), "spec", "parallelism"); err != nil {
		return fmt.Errorf("render the TestRun: %w", err)
	}
	if err := unstructured.SetNestedStringSlice(run.Object, args, "spec", "args"); err != nil {
		return fmt.Errorf("render the TestRun: %w", err)
	}
	if j.Script != nil {
		if err := setScript(run, j.Script); err != nil {
			return err
		}
	}
	for _, pod := range []string{"initializer", "runner"} {
		if err := setEnvironment(run, pod, j); err != nil {
			return err
		}
	}
	if len(j.Secrets) > 0 { // not for the initializer, which shows its variables as arguments of `k6 archive`
		secret := map[string]any{"secretRef": map[string]any{"name": tokenSecret(j.Plan.TestID)}}
		if err := extend(run, secret, "runner", "envFrom"); err != nil {
			return err
		}
	}
	if j.Module != "" {
		if err := mountModule(run, j.Plan); err != nil {
			return err
		}
	}
	return raiseMemory(run, runnerMemory(j))
}

// annotate stores plan, shards and length in the TestRun, so that another machine can attach to its run.
func annotate(run *unstructured.Unstructured, j Job) error {
	text, err := json.Marshal(j.Plan)
	if err != nil {
		return err
	}
	annotations := run.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[planAnnotation], annotations[shardsAnnotation], annotations[lengthAnnotation] = string(text), j.Shards, j.Length.String()
	run.SetAnnotations(annotations)
	return nil
}

// setScript replaces the script of the overlay by another one of this repository, in the same folder of the image.
func setScript(run *unstructured.Unstructured, script []string) error {
	field := []string{"spec", "script", "localFile"}
	existing, _, err := unstructured.NestedString(run.Object, field...)
	root, _, found := strings.Cut(existing, script[0]+"/")
	if err != nil || !found {
		return errors.Join(fmt.Errorf("render the TestRun: spec.script.localFile of the overlay is %q, which is not the path of %s in the image", existing, script[0]), err)
	}
	return unstructured.SetNestedField(run.Object, root+strings.Join(script, "/"), field...)
}

// withOutput returns the arguments of the TestRun, with the location of the shards as an output.
func withOutput(run *unstructured.Unstructured, shards string) ([]string, error) {
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
	return args, nil
}

// withRemoteWrite returns arguments with an output for a Prometheus and the tag of the test id. The overlay may have
// either already. The operator gives each runner its own tag, instance_id.
func withRemoteWrite(args []string, id string) []string {
	added := runners.RemoteWriteArgs(id)
	if !slices.Contains(args, runners.RemoteWrite) {
		return append(args, added...)
	}
	tag := added[len(added)-1]
	name, _, _ := strings.Cut(tag, "=")
	if i := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, name+"=") }); i >= 0 {
		args[i] = tag
		return args
	}
	return append(args, "--tag", tag)
}

// Output returns the URL for shards in the overlay, "" for none.
func (m *Manifests) Output() string {
	args, _, _ := unstructured.NestedStringSlice(m.TestRun.Object, "spec", "args") // Render reports malformed arguments
	for _, a := range args {
		if _, location, ok := strings.Cut(a, "soak="); ok && strings.Contains(location, "://") {
			return location
		}
	}
	return ""
}

// setEnvironment sets variables of a pod. It removes the overlay's settings of a plan and, if the runners write
// metrics, the overlay's settings for that. It keeps all other variables.
func setEnvironment(run *unstructured.Unstructured, pod string, j Job) error {
	list, _, err := unstructured.NestedSlice(run.Object, "spec", pod, "env")
	if err != nil {
		return fmt.Errorf("render the TestRun: spec.%s.env: %w", pod, err)
	}
	values := j.Plan.Document(j.Settings).PodVariables()
	maps.Copy(values, j.Env)
	list = slices.DeleteFunc(list, func(e any) bool {
		entry, ok := e.(map[string]any)
		name, _ := entry["name"].(string)
		_, replaced := values[name]
		// A variable here would override the secret.
		return ok && (replaced || j.Write && strings.HasPrefix(name, runners.RemoteWritePrefix) || slices.ContainsFunc(j.Plan.Settings(), func(s plan.Setting) bool { return s.Name == name }))
	})
	for _, name := range slices.Sorted(maps.Keys(values)) {
		list = append(list, map[string]any{"name": name, "value": values[name]})
	}
	return unstructured.SetNestedSlice(run.Object, list, "spec", pod, "env")
}

// mountModule mounts the module of the service at the path that the plan names.
func mountModule(run *unstructured.Unstructured, p plan.Plan) error {
	const name = "service"
	item := map[string]any{"key": moduleKey, "path": path.Base(p.Service)}
	volume := map[string]any{"name": name, "configMap": map[string]any{"name": moduleMap(p.TestID), "items": []any{item}}}
	mount := map[string]any{"name": name, "mountPath": moduleFolder}
	for _, pod := range []string{"initializer", "runner"} {
		if err := errors.Join(extend(run, volume, pod, "volumes"), extend(run, mount, pod, "volumeMounts")); err != nil {
			return err
		}
	}
	return nil
}

// extend appends an entry to a list of a pod.
func extend(run *unstructured.Unstructured, entry any, pod, list string) error {
	entries, _, err := unstructured.NestedSlice(run.Object, "spec", pod, list)
	if err != nil {
		return fmt.Errorf("render the TestRun: spec.%s.%s: %w", pod, list, err)
	}
	return unstructured.SetNestedSlice(run.Object, append(entries, entry), "spec", pod, list)
}

// runnerMemory returns 1.5 times the memory of one runner, in bytes.
func runnerMemory(j Job) int64 {
	share := j.Plan
	share.Connections, share.Runners = j.Plan.PerRunner(), 1
	need := j.Memory
	if need == 0 {
		need = preflight.Memory(share, preflight.Services{})
	}
	return clamp.Int64(need) * 3 / 2
}

// raiseMemory raises the runners' request and limit to need, if they are less.
func raiseMemory(run *unstructured.Unstructured, need int64) error {
	quantity := resource.NewQuantity((need>>20+1)<<20, resource.BinarySI)
	for _, kind := range []string{"requests", "limits"} {
		field := []string{"spec", "runner", "resources", kind, "memory"}
		text, found, err := unstructured.NestedString(run.Object, field...)
		if err != nil {
			return fmt.Errorf("render the TestRun: %w", err)
		}
		if found {
			have, err := resource.ParseQuantity(text)
			if err != nil {
				return fmt.Errorf("render the TestRun: the %s of the runners' memory, %q: %w", kind, text, err)
			}
			if have.Cmp(*quantity) >= 0 {
				continue
			}
		}
		if err := unstructured.SetNestedField(run.Object, quantity.String(), field...); err != nil {
			return fmt.Errorf("render the TestRun: %w", err)
		}
	}
	return nil
}
