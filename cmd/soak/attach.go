package main

import (
	"context"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/sse-soak/sse-soak/internal/cluster"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

func attachCommand(outcome *verdict.Outcome) *cobra.Command {
	s := settings{Local: plan.DefaultLocal()}
	cmd := &cobra.Command{
		Use:   "attach TESTID",
		Short: "Follow a soak on Kubernetes that another soak left, and judge it",
		Long:  "attach goes on where `soak run --on k8s` was cut off, on the same machine or another: it follows the run to its\nend, collects, judges and cleans up. The exit code is the verdict.",
		Args:  oneArg("run by its test id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := plan.FlagsFromEnvironment(cmd.Flags()); err != nil {
				return usageError{err}
			}
			s.plan.TestID = args[0]
			v, err := attach(cmd.Context(), s, cmd.OutOrStdout())
			if err != nil {
				return err
			}
			*outcome = v
			return nil
		},
	}
	plan.AddFlags(cmd.Flags(), plan.OfSuites(s.Local.Settings()))
	cmd.Flags().StringVar(&s.cluster.namespace, "namespace", defaultNamespace, "namespace of the run")
	s.cluster.flags(cmd.Flags())
	return cmd
}

func attach(parent context.Context, s settings, stdout io.Writer) (verdict.Outcome, error) {
	if err := cluster.CheckTestID(s.plan.TestID); err != nil {
		return "", usageError{err}
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
	ses.namespace = s.cluster.namespace
	if ses.plan, ses.place, err = ses.client.Find(gentle, ses.namespace, s.plan.TestID); err != nil {
		return "", err
	}
	if ses.dir, err = results.Create(s.Out, s.plan.TestID); err != nil {
		ses.dir = results.Dir(filepath.Join(s.Out, s.plan.TestID)) // of the soak that was cut off
	} else if err := ses.dir.Begin(0, results.NewManifest(0, ses.plan.RunID, false)); err != nil {
		return "", err
	}
	if err := ses.dir.WriteJSON(results.PlanFile, ses.plan); err != nil {
		return "", err
	}
	if err := ses.reachTarget(gentle); err != nil {
		ses.warn(err.Error())
	}
	return ses.follow(gentle, kill)
}
