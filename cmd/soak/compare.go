package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sse-soak/sse-soak/internal/results/compare"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

func compareCommand(outcome *verdict.Outcome) *cobra.Command {
	var tolerance float64
	cmd := &cobra.Command{
		Use:   "compare OLD… [--] NEW…",
		Short: "Compare runs of one plan; exit code 1 on a regression",
		Long: "compare compares new runs with old runs of the same plan: median, spread and significance of each metric.\n" +
			"Without --, the last folder is the new run. The comparison needs at least two old runs and one new run.\n" +
			"With enough runs, such as four on each side, it uses a rank-sum test.\n\n" +
			"    soak compare results/before-* -- results/after-*\n\n" +
			"The output also lists the kinds of change that the comparison cannot detect, such as an equal delay of every message.\n\n" +
			"Exit codes: 0 no regression, 1 a regression, 2 the runs cannot be compared, 64 wrong usage.",
		RunE: func(cmd *cobra.Command, args []string) error {
			old, recent, err := splitAtDash(args, cmd.ArgsLenAtDash())
			if err != nil {
				return usageError{Err: err}
			}
			if !(tolerance >= 0) {
				return usageError{Err: fmt.Errorf("--tolerance must be at least 0, got %v", tolerance)}
			}
			c, err := compare.Folders(old, recent, tolerance)
			if err != nil {
				return err
			}
			*outcome = c.Verdict()
			return c.Text(cmd.OutOrStdout())
		},
	}
	cmd.Flags().Float64Var(&tolerance, "tolerance", compare.Tolerance, "share of the old median by which a metric may get worse")
	return cmd
}

// splitAtDash returns the folders of the old and of the new runs. dash is the number of folders before --. Without --,
// dash is -1 and only the last folder is new.
func splitAtDash(dirs []string, dash int) (old, recent []string, err error) {
	if dash < 0 {
		dash = len(dirs) - 1
	}
	if len(dirs) == 2 {
		return nil, nil, fmt.Errorf("a comparison needs the folders of at least 3 runs of one plan; run `soak history %s %s` to list the changes between these two", dirs[0], dirs[1])
	}
	if len(dirs) < 3 || dash < 2 || dash == len(dirs) {
		return nil, nil, errors.New("name the folders of at least 3 runs of one plan: two or more old ones, then the new one")
	}
	return dirs[:dash], dirs[dash:], nil
}
