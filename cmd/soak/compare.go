package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sse-soak/sse-soak/internal/baseline"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

func compareCommand(outcome *verdict.Outcome) *cobra.Command {
	var tolerance float64
	cmd := &cobra.Command{
		Use:   "compare OLD DIR… [-- NEW DIR…]",
		Short: "Hold runs of one plan against each other; exit code 1 on a regression",
		Long: "compare holds new runs against old ones of the same plan: median, spread and significance of each figure.\n" +
			"Without -- the last folder is the new run. At least 3 runs; 4 against 4 and more have a test of their own.\n\n" +
			"    soak compare results/before-* -- results/after-*\n\n" +
			"What the runs cannot show, such as a delay of every message where service and runners share no clock, is listed as\n" +
			"not seen.\n\n" +
			"Exit codes: 0 nothing got worse, 1 a regression, 2 the runs cannot be compared, 64 wrong usage.",
		RunE: func(cmd *cobra.Command, args []string) error {
			old, now, err := oldAndNew(args, cmd.ArgsLenAtDash())
			if err != nil {
				return usageError{Err: err}
			}
			if !(tolerance >= 0) {
				return usageError{Err: fmt.Errorf("--tolerance is %v: it must be 0 or more", tolerance)}
			}
			c, err := compare(old, now, tolerance)
			if err != nil {
				return err
			}
			*outcome = c.Verdict()
			return c.Text(cmd.OutOrStdout())
		},
	}
	cmd.Flags().Float64Var(&tolerance, "tolerance", baseline.Tolerance, "share of the old median by which a figure may get worse")
	return cmd
}

// oldAndNew divides the folders at the dash (-1: there is none).
func oldAndNew(dirs []string, dash int) (old, now []string, err error) {
	if dash < 0 {
		dash = len(dirs) - 1
	}
	if len(dirs) < 3 || dash < 2 || dash == len(dirs) {
		return nil, nil, errors.New("name the folders of at least 3 runs of one plan: two old ones or more, then the new one")
	}
	return dirs[:dash], dirs[dash:], nil
}

func compare(old, now []string, tolerance float64) (*baseline.Comparison, error) {
	was, err := readRuns(old)
	if err != nil {
		return nil, err
	}
	is, err := readRuns(now)
	if err != nil {
		return nil, err
	}
	return baseline.Compare(was, is, tolerance)
}

func readRuns(dirs []string) ([]baseline.Run, error) {
	runs := make([]baseline.Run, 0, len(dirs))
	for _, dir := range dirs {
		r, err := baseline.Read(dir)
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	return runs, nil
}
