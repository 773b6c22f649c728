// Command bench measures what a soak costs: the memory and CPU of a runner, of the backend and
// of nginx per connection and per noop, beside the figures of their peers and the limits that
// this project has set itself. It starts everything itself, on loopback only.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// Exit codes: a limit that is broken is a result, a measurement that failed is none.
const (
	exitOverLimit = 1
	exitBroken    = 2
	exitUsage     = 64
)

// errOverLimit names the figures that broke a limit.
type errOverLimit struct{ names []string }

func (e errOverLimit) Error() string { return "over the limit: " + strings.Join(e.names, "; ") }

// A section is a part that can be measured alone.
type section struct {
	name    string
	measure func(context.Context, *options) ([]Figure, error)
}

// sections in the order they run.
var sections = []section{
	{"runner", measureRunner},
	{"backend", measureBackend},
	{"nginx", measureNginx},
	{"growth", measureGrowth},
	{"merge", measureMerge},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string) int {
	root := benchCommand()
	root.AddCommand(rawCommand())
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var over errOverLimit
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &over):
		fmt.Fprintln(os.Stderr, "bench:", err)
		return exitOverLimit
	case errors.As(err, &usage):
		fmt.Fprintf(os.Stderr, "bench: %v\n`bench --help` lists the flags.\n", err)
		return exitUsage
	}
	fmt.Fprintln(os.Stderr, "bench:", err)
	return exitBroken
}

// usageError is wrong usage; its sentence says what would be right.
type usageError struct{ error }

func benchCommand() *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure memory and CPU per connection, beside the peers' figures",
		Long: "bench measures the runner, the backend and nginx on this machine and holds the figures\n" +
			"against the project's limits. Run it at the root of the repository, with nothing else running.\n\n" +
			"Exit codes: 0 every limit kept, 1 a limit broken, 2 could not measure, 64 wrong usage.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unexpected argument %q", args[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return bench(cmd.Context(), o) },
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	f := cmd.Flags()
	f.BoolVar(&o.quick, "quick", false, "small counts, under a minute: shows that it works, judges no limit")
	f.StringSliceVar(&o.only, "only", nil, "sections to run: runner, backend, nginx, growth, merge")
	f.DurationVar(&o.growth, "growth", 10*time.Minute, "how long to watch a runner's memory, once it has settled for as long, 10m at most; 0 leaves it out, as --quick does")
	f.BoolVar(&o.update, "update", false, "keep the figures of --json's file for the sections that are not run")
	f.StringVar(&o.json, "json", "", "also write the figures to this file as JSON")
	f.StringVar(&o.md, "md", "", "also write the table to this file as Markdown")
	f.StringVar(&o.bin, "bin", "bin", "folder with k6 and backend")
	f.IntVar(&o.rounds, "rounds", 3, "how often runner and raw client take turns")
	f.DurationVar(&o.window, "window", 20*time.Second, "how long each of them is measured")
	f.StringVar(&o.keep, "keep", "", "keep the logs and shards of the processes in this folder")
	return cmd
}

func bench(ctx context.Context, o *options) error {
	if err := o.check(); err != nil {
		return err
	}
	cleanup, err := o.prepare()
	if err != nil {
		return err
	}
	defer cleanup()
	r := Report{Schema: 1, Machine: thisMachine(), Quick: o.quick}
	for _, s := range sections {
		if len(o.only) > 0 && !slices.Contains(o.only, s.name) || s.name == "growth" && o.growth == 0 {
			continue
		}
		began := time.Now()
		o.say("%s …", s.name)
		figures, err := s.measure(ctx, o)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("measure %s: %w", s.name, err)
		}
		for i := range figures {
			figures[i].Section, figures[i].Measured = s.name, began.UTC().Format("2006-01-02 15:04 UTC")
			figures[i].judge(o.quick)
		}
		r.Figures = append(r.Figures, figures...)
		o.say("%s took %v", s.name, time.Since(began).Round(time.Second))
	}
	r.Machine.LoadAfter = loadAverage()
	if err := r.merge(o); err != nil {
		return err
	}
	r.writeText(os.Stdout)
	if err := r.save(o); err != nil {
		return err
	}
	if broken := r.broken(); len(broken) > 0 {
		return errOverLimit{broken}
	}
	return nil
}
