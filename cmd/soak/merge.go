package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/store"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

func mergeCommand(outcome *verdict.Outcome) *cobra.Command {
	out := plan.DefaultLocal().Out
	cmd := &cobra.Command{
		Use:   "merge DIR | s3://BUCKET/PREFIX",
		Short: "Merge the shards of a run into one verdict",
		Long: "merge reads the shards in DIR (or DIR/shards), adds them up, judges them and writes verdict.json and the reports into DIR.\n" +
			"From a bucket it fetches them to results/TESTID first. The parameters of the URL are those of gocloud.dev: region,\n" +
			"endpoint, use_path_style, profile …; credentials come from the environment, a profile or the role of the machine.\n\n" +
			"The exit code is the verdict.",
		Args: oneArg("folder of a run, such as results/latest, or bucket"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := plan.FlagsFromEnvironment(cmd.Flags()); err != nil {
				return usageError{err}
			}
			debug.SetMemoryLimit(mergeMemory)
			d, problems, err := bring(args[0], out)
			var usage usageError
			switch {
			case errors.As(err, &usage):
				return err
			case err != nil: // there is no folder to put the verdict into
				*outcome = verdict.Invalid
				fmt.Fprintf(cmd.OutOrStdout(), "INVALID  %s\n  - %v\n", args[0], err)
				return nil
			}
			v, err := judge(d, "", problems...)
			if err != nil {
				return err
			}
			*outcome = v.Verdict
			return report.Text(cmd.OutOrStdout(), v)
		},
	}
	plan.AddFlags(cmd.Flags(), []plan.Setting{{Name: "OUT", Value: &out, Help: "folder of all runs, for one that comes from a bucket"}})
	return cmd
}

// mergeMemory is what a merge keeps to, as far as it can, before its garbage is collected at
// leisure: a million connections take half of it.
const mergeMemory = 900 << 20

// bring is the folder of a run, which comes to out first where it is in a bucket. problems are
// what did not come.
func bring(place, out string) (d results.Dir, problems []string, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	from, err := store.Open(ctx, place)
	if err != nil {
		return "", nil, usageError{err}
	}
	defer from.Close()
	if folder, ok := from.(store.Folder); ok {
		return results.Dir(folder), nil, nil
	}
	ctx, cancel := context.WithTimeout(telling(ctx), fetchWithin)
	defer cancel()
	said := time.Now()
	return results.Fetch(ctx, from, out, func(done, of int) {
		if time.Since(said) > 2*time.Second {
			said = time.Now()
			fmt.Fprintf(os.Stderr, "fetched %d of %d files\n", done, of)
		}
	})
}

// judge makes the verdict of a run from its files, and every report. against is the run to
// compare with, "" for the last that passed; problems are what made the files incomplete before.
func judge(d, against results.Dir, problems ...string) (*verdict.Verdict, error) {
	v, m, err := d.Judge(problems...)
	if err != nil {
		return nil, err
	}
	return v, d.Report(v, m, against)
}

// conclude judges the run in d, and tells its verdict and where the report is.
func conclude(d results.Dir, stdout io.Writer) (verdict.Outcome, error) {
	v, err := judge(d, "")
	if err != nil {
		return "", err
	}
	fmt.Fprintln(stdout)
	if err := report.Text(stdout, v); err != nil {
		return "", err
	}
	fmt.Fprintf(stdout, "\nreport  %s\n", results.Dir(d.Path(results.PageFile)).Relative())
	return v.Verdict, nil
}
