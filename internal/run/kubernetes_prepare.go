package run

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/run/cluster"
	"github.com/sse-soak/sse-soak/internal/run/target"
	"github.com/sse-soak/sse-soak/internal/shard/store"
	"github.com/sse-soak/sse-soak/internal/suite"
)

func buildOverlay(overlay string) (*cluster.Manifests, error) {
	if info, err := os.Stat(overlay); err == nil && info.IsDir() {
		return cluster.Build(overlay)
	}
	file, err := Locate("infra", "k6-operator", "overlays", overlay, "kustomization.yaml")
	if err != nil {
		return nil, UsageError{fmt.Errorf("--overlay must be a folder, or a name in infra/k6-operator/overlays, got %q", overlay)}
	}
	return cluster.Build(filepath.Dir(file))
}

// prepare creates the folder of the run and applies the overlay, with a new backend if the plan has no URL. It checks
// that this machine can reach the bucket and, if the target is in the cluster, the target.
func (d *kubernetes) prepare(ctx context.Context) (err error) {
	m := d.manifests
	d.namespace = m.TestRun.GetNamespace()
	if d.Shards == "" && m.Output() != "" {
		d.Shards, _ = store.Split(m.Output())
	}
	if !strings.HasPrefix(d.Shards, "s3://") {
		return UsageError{errors.New("the runners need a bucket for their shards; set --shards s3://BUCKET/PREFIX, or set a bucket in the overlay")}
	}
	d.location = store.Join(d.Shards, d.Plan.TestID)
	if d.Plan.Control > 0 && d.Plan.ControlURL == "" {
		d.Plan.ControlURL, d.startReference = cluster.ControlURL(d.namespace, d.Plan.TestID), true
	}
	if err := d.readModule(); err != nil {
		return err
	}
	if err := d.chooseBackend(ctx); err != nil {
		return err
	}
	if d.dir, err = results.Create(d.Out, d.Plan.TestID); err != nil {
		return err
	}
	if err := d.dir.WriteManifest(0, d.manifest()); err != nil {
		return err
	}
	d.checkOperator(ctx)
	if err := d.apply(ctx); err != nil {
		return err
	}
	if err := d.reachTarget(ctx); err != nil {
		return err
	}
	// A target outside of the cluster need not answer this machine. The runners report if it does not answer them.
	err = d.targets.Probe(ctx, d.interval)
	if err != nil && d.backend != nil {
		return err
	}
	d.reachable = err == nil
	return d.claim(ctx, false)
}

// readModule reads a description that is a file of the user, and sets the service of the plan to its path in the pods.
func (d *kubernetes) readModule() error {
	if !plan.IsServiceFile(d.Plan.Service) {
		return nil
	}
	text, err := os.ReadFile(d.Plan.Service)
	if err != nil {
		return fmt.Errorf("read the description of the service: %w", err)
	}
	d.module, d.Plan.Service = string(text), cluster.ModulePath(d.Plan.Service)
	if d.Suite.Target.Kind == suite.Model { // a setting of the script
		d.Settings["SERVICE"] = d.Plan.Service
	}
	return nil
}

// chooseBackend sets the URL of the target: the URL in the plan, or the URL of a new backend of the overlay. A new
// backend disconnects the streams of the backend that it replaces. If another run uses that one, chooseBackend returns
// an error.
func (d *kubernetes) chooseBackend(ctx context.Context) (err error) {
	if d.Plan.BackendURL == "" {
		p := d.Plan
		p.NoopInterval = d.interval.Seconds()
		if d.interval == 0 {
			p.NoopInterval = unplannedInterval.Seconds()
		}
		if d.Plan.BackendURL, err = d.manifests.RenewBackend(p); err != nil {
			return err
		}
		if d.managesTarget = d.Plan.BackendURL != ""; !d.managesTarget {
			return UsageError{errors.New("BACKEND_URL is missing: this overlay has no backend")}
		}
	}
	if !d.managesTarget {
		d.manifests.OmitBackend()
	}
	otherRuns, err := d.client.OtherRuns(ctx, d.namespace, d.Plan.BackendURL)
	if err == nil && d.managesTarget && len(otherRuns) > 0 {
		err = fmt.Errorf("this run would replace the backend in %s, which the run %s uses; wait until that run ends, or set BACKEND_URL", d.namespace, otherRuns[0])
	}
	return err
}

// apply creates the objects of the overlay that stay between runs, and waits until their pods are ready.
func (d *kubernetes) apply(ctx context.Context) error {
	d.report("preparing the namespace " + d.namespace)
	skipped, err := d.client.Apply(ctx, d.manifests.Setup)
	if err != nil {
		return err
	}
	if len(skipped) > 0 {
		d.report("this user has no permission to change " + format.Count(len(skipped), "object") + " of the overlay; soak assumes that no object is missing")
	}
	for _, o := range d.manifests.Setup {
		if o.GetKind() != "Deployment" {
			continue
		}
		if err := d.client.Await(ctx, o.GetNamespace(), o.GetName(), d.Kubernetes.StartTimeout, d.report); err != nil {
			return err
		}
	}
	return nil
}

// checkOperator warns if the k6-operator does not run, or if its release is not the tested one. An unknown version is
// not an error, because the service account soak has no permission in the namespace of the operator.
func (d *kubernetes) checkOperator(ctx context.Context) {
	version, warning, err := d.client.Operator(ctx)
	switch {
	case apierrors.IsForbidden(err):
	case err != nil:
		d.report(fmt.Sprintf("%v; the tested version is %s", err, cluster.TestedOperator))
	case warning != "":
		d.warn(warning)
	default:
		d.report("the k6-operator is " + version)
	}
}

// reachTarget sets the address at which this machine reaches the target. This is the address that the user set (Via),
// the URL of the target, or a port that the API server forwards. In the last case, reachTarget also records the
// pod, whose restarts targetState reports.
func (d *kubernetes) reachTarget(ctx context.Context) (err error) {
	token := os.Getenv("BACKEND_TOKEN")
	if via := d.Kubernetes.Via; via != "" {
		d.targets = target.Targets{target.RemoteVia(d.Plan.BackendURL, token, via)}
		return nil
	}
	if d.targets, err = target.Remotes([]string{d.Plan.BackendURL}, token, ""); err != nil {
		return err
	}
	service, ok := cluster.ServiceOf(d.Plan.BackendURL)
	if !ok {
		return nil
	}
	forward, err := d.client.OpenService(ctx, service)
	if err != nil {
		return err
	}
	d.closers = append(d.closers, forward.Close)
	d.targets = target.Targets{target.RemoteVia(d.Plan.BackendURL, token, forward.Address)}
	if d.backend == nil {
		d.backend = forward.Pod
	}
	return nil
}

func (d *kubernetes) openShards(ctx context.Context, location string) (store.Store, error) {
	if service, rebase, ok := clusterBucket(location); ok {
		forward, err := d.client.OpenService(ctx, service)
		if err != nil {
			return nil, err
		}
		d.closers = append(d.closers, forward.Close)
		location = rebase(forward.Address)
	}
	return store.Open(ctx, location)
}

// clusterBucket reports whether a location is in a bucket of the cluster. It returns the service of the bucket, and a
// function that replaces the address in the location.
func clusterBucket(location string) (service cluster.Service, rebase func(address string) string, ok bool) {
	u, err := url.Parse(location)
	if err != nil {
		return service, nil, false
	}
	query := u.Query()
	service, ok = cluster.ServiceOf(query.Get("endpoint"))
	return service, func(address string) string {
		query.Set("endpoint", "http://"+address)
		u.RawQuery = query.Encode()
		return u.String()
	}, ok
}

// liveCommand returns the command that shows a run from its shards, with a port-forward for a bucket in the cluster.
func liveCommand(location string) string {
	service, rebase, ok := clusterBucket(location)
	if !ok {
		return "soak live " + report.Shell(location)
	}
	return fmt.Sprintf("kubectl port-forward -n %s service/%s %d, and soak live %s",
		service.Namespace, service.Name, service.Port, report.Shell(rebase(fmt.Sprintf("127.0.0.1:%d", service.Port))))
}
