package cluster

import (
	"cmp"
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

// Annotations of a TestRun that let any machine attach to its run.
const (
	planAnnotation   = "sse-soak/plan"
	shardsAnnotation = "sse-soak/shards"
	lengthAnnotation = "sse-soak/length"
)

// namePrefix turns a test id into the name of a Service, which must begin with a letter.
const namePrefix = "soak-"

// maxTestID leaves room for the operator's suffixes in a label of 63 characters.
const maxTestID = 40

var testID = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

// CheckTestID returns an error if a test id cannot name objects of a cluster.
func CheckTestID(id string) error {
	if len(id) > maxTestID || !testID.MatchString(id) {
		return fmt.Errorf("TESTID must be 1 to %[2]d lower-case letters, digits and '-' on Kubernetes, and must begin and end with a letter or a digit, got %[1]q", id, maxTestID)
	}
	return nil
}

// Name returns the name of the TestRun for a test id.
func Name(id string) string { return namePrefix + id }

func tokenSecret(id string) string { return Name(id) + "-token" }

func moduleMap(id string) string { return Name(id) + "-service" }

// moduleFolder is the folder of the service's module in the pods, and moduleKey its key in the config map.
const (
	moduleFolder = "/soak/service"
	moduleKey    = "service.js"
)

// ModulePath returns the path at which the pods mount the user's module file.
func ModulePath(file string) string { return path.Join(moduleFolder, filepath.Base(file)) }

// A Launch is one start of the runners.
type Launch struct {
	plan.Document
	Shards      string            // URL to which the runners write their shards
	Secrets     map[string]string // variables that only the runners may read, such as tokens
	Module      string            // source of the module at the path that the plan names; "": the image has it
	RemoteWrite bool              // the runners write metrics to the Prometheus server that the secret names
	Env         map[string]string // further variables
	Script      []string          // path from the repository's root; nil: the overlay's
	Memory      uint64            // maximum of a runner, in bytes; 0: the estimate for the plan
	Length      time.Duration     // duration of the runners
	Created     time.Time         // creation of the TestRun; only Find sets it
}

// Render completes the TestRun for the launch.
func (m *Manifests) Render(l Launch) error {
	r := &rendering{Unstructured: m.TestRun}
	r.SetName(Name(l.Plan.TestID))
	r.annotate(l)
	r.setArguments(l)
	r.set(int64(l.Plan.Runners), "spec", "parallelism")
	if l.Script != nil {
		r.setScript(l.Script)
	}
	for _, pod := range []string{"initializer", "runner"} {
		r.setEnvironment(pod, l)
	}
	if len(l.Secrets) > 0 { // not for the initializer, which shows its variables as arguments of `k6 archive`
		r.extend(map[string]any{"secretRef": map[string]any{"name": tokenSecret(l.Plan.TestID)}}, "runner", "envFrom")
	}
	if l.Module != "" {
		r.mountModule(l.Plan)
	}
	r.raiseMemory(runnerMemory(l))
	if r.err != nil {
		return fmt.Errorf("render the TestRun: %w", r.err)
	}
	return nil
}

// A rendering completes an object of the overlay. It keeps the first error, such as a field of the wrong type.
type rendering struct {
	*unstructured.Unstructured
	err error
}

func (r *rendering) fail(err error) { r.err = cmp.Or(r.err, err) }

// set sets a field. It does nothing after an error.
func (r *rendering) set(value any, field ...string) {
	if r.err == nil {
		r.err = unstructured.SetNestedField(r.Object, value, field...)
	}
}

func (r *rendering) list(field ...string) []any {
	entries, _, err := unstructured.NestedSlice(r.Object, field...)
	r.fail(err)
	return entries
}

// annotate stores plan, shards and length in the TestRun, so that another machine can attach to its run.
func (r *rendering) annotate(l Launch) {
	text, err := json.Marshal(l.Plan)
	r.fail(err)
	annotations := map[string]string{}
	maps.Copy(annotations, r.GetAnnotations())
	annotations[planAnnotation], annotations[shardsAnnotation], annotations[lengthAnnotation] = string(text), l.Shards, l.Length.String()
	r.SetAnnotations(annotations)
}

// setScript replaces the script of the overlay with another script of this repository, in the same folder of the image.
func (r *rendering) setScript(script []string) {
	field := []string{"spec", "script", "localFile"}
	existing, _, err := unstructured.NestedString(r.Object, field...)
	root, _, found := strings.Cut(existing, script[0]+"/")
	if err != nil || !found {
		r.fail(errors.Join(fmt.Errorf("spec.script.localFile of the overlay is %q, which is not the path of %s in the image", existing, script[0]), err))
	}
	r.set(root+strings.Join(script, "/"), field...)
}

// setArguments sets the location of the shards as an output and, if the runners write metrics, the output for
// Prometheus.
func (r *rendering) setArguments(l Launch) {
	args, _, err := unstructured.NestedStringSlice(r.Object, "spec", "args")
	r.fail(err)
	const output = "soak="
	i := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, output) })
	if i < 0 {
		i = len(args) + 1
		args = append(args, "--out", output)
	}
	args[i] = output + l.Shards
	if l.RemoteWrite || slices.Contains(args, runners.RemoteWrite) {
		args = withRemoteWrite(args, l.Plan.TestID)
	}
	r.fail(unstructured.SetNestedStringSlice(r.Object, args, "spec", "args"))
}

// withRemoteWrite returns args with the output for Prometheus and the tag of the test id. args may have either already.
// The operator gives each runner its own tag, instance_id.
func withRemoteWrite(args []string, id string) []string {
	remoteWriteArgs := runners.RemoteWriteArgs(id)
	if !slices.Contains(args, runners.RemoteWrite) {
		return append(args, remoteWriteArgs...)
	}
	tag := remoteWriteArgs[len(remoteWriteArgs)-1]
	name, _, _ := strings.Cut(tag, "=")
	if i := slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, name+"=") }); i >= 0 {
		args[i] = tag
		return args
	}
	return append(args, "--tag", tag)
}

// Output returns the URL for shards in the overlay; "" for none.
func (m *Manifests) Output() string {
	args, _, _ := unstructured.NestedStringSlice(m.TestRun.Object, "spec", "args") // Render reports malformed arguments
	for _, a := range args {
		if _, location, ok := strings.Cut(a, "soak="); ok && strings.Contains(location, "://") {
			return location
		}
	}
	return ""
}

// setEnvironment sets variables of a pod. It removes the overlay's variables for the plan and, if the runners write
// metrics, for remote write. It keeps all other variables.
func (r *rendering) setEnvironment(pod string, l Launch) {
	values := l.PodVariables()
	maps.Copy(values, l.Env)
	list := slices.DeleteFunc(r.list("spec", pod, "env"), func(e any) bool {
		entry, ok := e.(map[string]any)
		name, _ := entry["name"].(string)
		_, replaced := values[name]
		// A variable for remote write would override the secret.
		return ok && (replaced || l.RemoteWrite && strings.HasPrefix(name, runners.RemoteWritePrefix) || slices.ContainsFunc(l.Plan.Settings(), func(s plan.Setting) bool { return s.Name == name }))
	})
	for _, name := range slices.Sorted(maps.Keys(values)) {
		list = append(list, map[string]any{"name": name, "value": values[name]})
	}
	r.set(list, "spec", pod, "env")
}

func (r *rendering) mountModule(p plan.Plan) {
	const name = "service"
	item := map[string]any{"key": moduleKey, "path": path.Base(p.Service)}
	volume := map[string]any{"name": name, "configMap": map[string]any{"name": moduleMap(p.TestID), "items": []any{item}}}
	for _, pod := range []string{"initializer", "runner"} {
		r.extend(volume, pod, "volumes")
		r.extend(map[string]any{"name": name, "mountPath": moduleFolder}, pod, "volumeMounts")
	}
}

func (r *rendering) extend(entry any, pod, list string) {
	r.set(append(r.list("spec", pod, list), entry), "spec", pod, list)
}

func runnerMemory(l Launch) int64 {
	share := l.Plan
	share.Connections, share.Runners = l.Plan.PerRunner(), 1
	need := l.Memory
	if need == 0 {
		need = preflight.Memory(share, preflight.Services{})
	}
	return clamp.Int64(need) * 3 / 2
}

// raiseMemory raises the runners' memory request and memory limit to at least need bytes.
func (r *rendering) raiseMemory(need int64) {
	quantity := resource.NewQuantity((need>>20+1)<<20, resource.BinarySI)
	for _, kind := range []string{"requests", "limits"} {
		field := []string{"spec", "runner", "resources", kind, "memory"}
		text, found, err := unstructured.NestedString(r.Object, field...)
		r.fail(err)
		if found {
			have, err := resource.ParseQuantity(text)
			if err != nil {
				r.fail(fmt.Errorf("the %s of the runners' memory, %q: %w", kind, text, err))
			}
			if have.Cmp(*quantity) >= 0 {
				continue
			}
		}
		r.set(quantity.String(), field...)
	}
}
