package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/sse-soak/sse-soak/internal/cluster"
	"github.com/sse-soak/sse-soak/internal/resources"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/target"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// clusterSettings are the flags that matter on Kubernetes only.
type clusterSettings struct {
	context   string
	via       string
	namespace string
	start     time.Duration
	keep      bool
}

const defaultNamespace = "sse-soak" // of infra/k6-operator

func (c *clusterSettings) flags(f *pflag.FlagSet) {
	f.StringVar(&c.via, "backend-via", "", "k8s: HOST or HOST:PORT at which this machine asks the service for its own account, where BACKEND_URL is for the runners only")
	f.StringVar(&c.context, "kube-context", "", "k8s: context of the kubeconfig (default: its current one)")
	f.DurationVar(&c.start, "start-timeout", 10*time.Minute, "k8s: how long initializer, runners and starter may each take")
	f.BoolVar(&c.keep, "keep", false, "k8s: leave TestRun and pods in the cluster when all is done")
}

// A clusterSession is one soak on Kubernetes, started or attached to.
type clusterSession struct {
	session
	client    *cluster.Client
	namespace string
	backend   *cluster.Watched
	closers   []func()
}

// soakOnCluster runs one soak under the k6-operator. After an error that is not told to be one of
// the connection nothing of the run is left in the cluster.
func soakOnCluster(parent context.Context, s settings, stdout io.Writer) (verdict.Outcome, error) {
	if err := s.checkForCluster(); err != nil {
		return "", usageError{err}
	}
	manifests, err := buildOverlay(s.Overlay)
	if err != nil {
		return "", err
	}
	if parent == nil {
		parent = context.Background()
	}
	gentle, kill, stop := interrupts(parent)
	defer stop()
	ses, err := newClusterSession(s, stdout)
	if err != nil {
		return "", err
	}
	defer ses.close()
	if err := ses.prepare(gentle, manifests); err != nil {
		if gentle.Err() != nil {
			return "", errors.New("stopped before the run began")
		}
		return "", err
	}
	if err := ses.dir.WriteJSON(results.PlanFile, ses.plan); err != nil {
		return "", err
	}
	if err := ses.client.Create(gentle, manifests.TestRun, ses.plan.TestID, ses.targets[0].Token); err != nil {
		return "", err
	}
	return ses.follow(gentle, kill)
}

// checkForCluster refuses what only makes sense on machines that one starts by hand.
func (s *settings) checkForCluster() error {
	switch {
	case s.part > 0 || !s.startAt.IsZero():
		return errors.New("--runner and --start-at are for machines that are started by hand; on Kubernetes the operator starts all runners together")
	case len(s.plan.BackendURLs()) > 1:
		return errors.New("BACKEND_URL names several services: on Kubernetes name one, a Service or load balancer in front of them")
	case s.script != "":
		return errors.New("--script is the one in the image on Kubernetes: spec.script of the overlay")
	}
	return cluster.CheckTestID(s.plan.TestID)
}

func newClusterSession(s settings, stdout io.Writer) (*clusterSession, error) {
	client, err := cluster.Connect(s.cluster.context)
	if err != nil {
		return nil, err
	}
	ses := &clusterSession{client: client}
	ses.session = session{settings: s, stdout: stdout, run: results.Run{Command: os.Args, Version: version(), Machine: resources.ThisMachine()}}
	return ses, nil
}

// reachTarget finds the way to the target's own account: straight, or into the cluster.
func (s *clusterSession) reachTarget(ctx context.Context) error {
	token := os.Getenv("BACKEND_TOKEN")
	s.targets = target.Remotes([]string{s.plan.BackendURL}, token)
	if via := s.settings.cluster.via; via != "" {
		s.targets = target.Several{target.Through(s.plan.BackendURL, token, via)}
		return nil
	}
	service, inside := cluster.ServiceOf(s.plan.BackendURL)
	if !inside {
		return nil
	}
	forward, err := s.client.OpenService(ctx, service)
	if err != nil {
		return err
	}
	s.closers = append(s.closers, forward.Close)
	s.targets = target.Several{target.Through(s.plan.BackendURL, token, forward.Address)}
	if s.backend == nil {
		s.backend, err = s.client.WatchPod(ctx, service.Namespace, forward.Pod)
	}
	return err
}

func (s *clusterSession) close() {
	for _, c := range s.closers {
		c()
	}
}

func (s *clusterSession) say(news string) {
	fmt.Fprintln(os.Stderr, time.Now().UTC().Format(time.TimeOnly), news)
}

func (s *clusterSession) warn(text string) {
	s.run.Warnings = append(s.run.Warnings, text)
	s.say("warning: " + text)
}

// follow follows the run to its end, collects, judges and cleans up.
func (s *clusterSession) follow(gentle, kill context.Context) (verdict.Outcome, error) {
	s.announce()
	limits := cluster.DefaultLimits(s.plan)
	limits.Start = s.settings.cluster.start
	run := cluster.Follow(s.client, s.namespace, s.plan, limits, string(s.dir))
	if err := s.watch(gentle, kill, run); err != nil {
		run.Close()
		if errors.Is(err, cluster.ErrLost) {
			return "", fmt.Errorf("%w; the run goes on there: `soak attach %s` follows it to its end", err, s.plan.TestID)
		}
		return "", errors.Join(errors.New("killed"), s.cleanUp())
	}
	s.run.Problems = append(s.run.Problems, run.Problems()...)
	s.fetch(gentle, kill)
	run.Close()
	if s.backend != nil {
		s.run.Failures = append(s.run.Failures, s.client.Restarts(kill, s.backend)...)
	}
	if err := s.reachTarget(kill); err != nil { // anew: the way there may have broken since
		s.warn(err.Error())
	}
	outcome, err := s.conclude(kill)
	if left := s.cleanUp(); left != nil { // the verdict stands all the same
		s.say("warning: " + left.Error())
	}
	return outcome, err
}

// cleanUp removes the run from the cluster, also when everything else was cut short.
func (s *clusterSession) cleanUp() error {
	if s.settings.cluster.keep {
		s.say(fmt.Sprintf("kept: kubectl get testrun,job,pod -n %s -l k6_cr=%s", s.namespace, cluster.Name(s.plan.TestID)))
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return s.client.Delete(ctx, s.namespace, cluster.Name(s.plan.TestID))
}
