package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/results"
)

func historyCommand() *cobra.Command {
	out := plan.DefaultLocal().Out
	var open, prune, dryRun bool
	var keep, limit int
	cmd := &cobra.Command{
		Use:   "history [OLD NEW]",
		Short: "List all runs: verdicts, metrics over time, changes, regressions",
		Long: "history lists the runs in results/, newest first: verdict, plan, figures, regressions by the rules of `soak compare`, and\n" +
			"changes since the previous run. Like every run, it writes the list to results/" + results.HistoryFile + ".\n\n" +
			"    soak history --open\n" +
			"    soak history before-1 after-1              changes between these two runs\n" +
			"    soak history --prune --keep 20 --dry-run\n\n" +
			"With --prune, history removes old runs without confirmation. It keeps the newest runs (--keep), the run that results/latest\n" +
			"links to, runs that failed, invalid runs with faults, baselines of other runs (`soak report --baseline`), and runs whose verdict is\n" +
			"missing, damaged or unknown.\n\n" +
			"The verdicts do not affect the exit code.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := plan.FlagsFromEnvironment(cmd.Flags()); err != nil {
				return usageError{Err: err}
			}
			switch {
			case len(args) != 0 && len(args) != 2:
				return usageError{Err: errors.New("name two runs by their folders or test ids to compare them, or none to list all")}
			case len(args) == 2 && (prune || open):
				return usageError{Err: errors.New("--prune and --open cannot be combined with run arguments")}
			case limit < 1:
				return usageError{Err: fmt.Errorf("--limit must be at least 1, got %d", limit)}
			case prune && keep < 1:
				return usageError{Err: fmt.Errorf("--keep must be at least 1, got %d", keep)}
			case !prune && (dryRun || cmd.Flags().Changed("keep")):
				return usageError{Err: errors.New("--keep and --dry-run require --prune")}
			case prune:
				return pruneRuns(out, keep, dryRun, cmd.OutOrStdout())
			}
			if len(args) == 2 {
				p, err := results.ReadPair(folderOf(args[0], out), folderOf(args[1], out))
				if err != nil {
					return err //nolint:wrapcheck // a sentence for the user
				}
				return p.Text(cmd.OutOrStdout()) //nolint:wrapcheck // of standard output
			}
			return listRuns(out, limit, open, cmd)
		},
	}
	f := cmd.Flags()
	plan.AddFlags(f, []plan.Setting{{Name: "OUT", Value: &out, Default: out, Help: "folder of all runs"}})
	f.IntVar(&limit, "limit", 20, "maximum number of runs to print (index.html: no limit)")
	f.BoolVar(&open, "open", false, "open "+results.HistoryFile+" in the browser")
	f.BoolVar(&prune, "prune", false, "remove old runs; requires --keep")
	f.IntVar(&keep, "keep", 0, "with --prune: number of newest runs to keep, whatever their verdict")
	f.BoolVar(&dryRun, "dry-run", false, "with --prune: list the runs without removing them")
	return cmd
}

func listRuns(folder string, limit int, open bool, cmd *cobra.Command) error {
	h, err := results.ReadHistory(folder)
	if err != nil {
		return err
	}
	if err := h.Text(cmd.OutOrStdout(), limit); err != nil {
		return err
	}
	page := filepath.Join(folder, results.HistoryFile)
	if err := h.Write(); err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "\npage        %s\n", results.Dir(page).Relative())
	if !open {
		return nil
	}
	return openPage(page, cmd.ErrOrStderr())
}

func pruneRuns(folder string, keep int, dryRun bool, out io.Writer) error {
	h, err := results.ReadHistory(folder)
	if err != nil {
		return err
	}
	decisions, err := h.Prune(keep)
	if err != nil {
		return err
	}
	removal := "removed"
	if dryRun {
		removal = "would remove"
	} else {
		err = h.Remove(decisions)
	}
	removals := 0
	for _, d := range decisions {
		result := "kept"
		if d.Remove {
			result = removal
			removals++
		}
		fmt.Fprintf(out, "%-12s  %s: %s\n", result, d.Name, d.Reason)
	}
	fmt.Fprintf(out, "%s %d of %s in %s\n", removal, removals, format.Count(len(decisions), "run"), folder)
	if dryRun {
		return nil
	}
	return errors.Join(err, results.WriteHistory(folder))
}
