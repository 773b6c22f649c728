package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/sse-soak/sse-soak/internal/capsule"
	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/run"
	"github.com/sse-soak/sse-soak/internal/store"
)

const capsuleSuffix = ".capsule.tar.gz"

func capsuleCommand() *cobra.Command {
	out := plan.DefaultLocal().Out
	var prometheus, without, to string
	cmd := &cobra.Command{
		Use:   "capsule TESTID|DIR",
		Short: "Keep the evidence of a run in one archive",
		Long: "capsule packs the results of a run, what Prometheus knew of its time, the dashboards, versions, image digests and kernel\n" +
			"settings into one archive with checksums. `soak open` shows it again (docs/capsule.md).\n\n" +
			"Prometheus is asked by remote read at the address of --prometheus or PROMETHEUS_URL, which may have a user and a password in it.\n" +
			"Where it does not answer, the capsule says so and is made without. Secrets are left out.",
		Args: oneArg("run, by its test id or its folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := plan.FlagsFromEnvironment(cmd.Flags()); err != nil {
				return usageError{Err: err}
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			if prometheus == "" {
				prometheus = os.Getenv("PROMETHEUS_URL")
			}
			from := capsule.Source{Results: folderOf(args[0], out), Prometheus: prometheus, Without: without}
			return makeCapsule(ctx, from, to, cmd.OutOrStdout())
		},
	}
	plan.AddFlags(cmd.Flags(), []plan.Setting{{Name: "OUT", Value: &out, Help: "folder of all runs, for one that is named by its test id"}})
	cmd.Flags().StringVar(&prometheus, "prometheus", "", "address of the Prometheus that watched the run (default: PROMETHEUS_URL)")
	cmd.Flags().StringVar(&without, "without-prometheus", "", "make it without Prometheus's data, for this reason, which the capsule tells")
	cmd.Flags().StringVar(&to, "to", "", "file, folder, or s3://BUCKET/PREFIX to write the capsule to (default: TESTID"+capsuleSuffix+" beside the folder of the run)")
	return cmd
}

// folderOf is the folder of a run that is named by it, or by its test id.
func folderOf(name, out string) string {
	if info, err := os.Stat(name); err != nil || !info.IsDir() {
		name = filepath.Join(out, name)
	}
	if real, err := filepath.EvalSymlinks(name); err == nil { // latest
		return real
	}
	return name
}

func makeCapsule(ctx context.Context, from capsule.Source, to string, out io.Writer) error {
	from.Version = version()
	if board, err := run.Beside("grafana", "dashboards", "soak.json"); err == nil {
		from.Dashboards = filepath.Dir(board)
	}
	dotenv := ".env"
	if compose, err := run.Beside("compose.yaml"); err == nil {
		from.Compose, dotenv = compose, filepath.Join(filepath.Dir(compose), dotenv)
	}
	from.Secrets = capsule.NewSecrets(os.Environ(), dotenv, from.Prometheus)
	name := filepath.Base(from.Results) + capsuleSuffix
	file := filepath.Join(filepath.Dir(from.Results), name)
	info, err := os.Stat(to)
	switch {
	case store.IsBucket(to):
		tmp, err := os.MkdirTemp("", "soak-capsule-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(tmp)
		file = filepath.Join(tmp, name)
		if path, _, _ := strings.Cut(to, "?"); !strings.HasSuffix(path, ".tar.gz") {
			to = store.Join(to, name)
		}
	case to != "" && err == nil && info.IsDir():
		file = filepath.Join(to, name)
	case to != "":
		file = to
	}
	contents, err := capsule.Make(ctx, from, file)
	if err == nil && store.IsBucket(to) && contents.Prometheus.Missing != "" {
		there := file + ".there"
		if store.Download(ctx, to, there) == nil && capsule.HasData(there, contents.TestID) {
			err = capsule.ErrHasData
		}
	}
	if errors.Is(err, capsule.ErrHasData) {
		if !store.IsBucket(to) {
			to = file
		}
		to, _, _ = strings.Cut(to, "?")
		fmt.Fprintf(out, "capsule  %s stays as it is: %v\ndata     none of Prometheus now: %s\n--to makes another one beside it.\n", to, err, contents.Prometheus.Missing)
		return nil
	}
	if err != nil {
		return err
	}
	if store.IsBucket(to) {
		if err := store.Upload(ctx, file, to); err != nil {
			return err
		}
		to, _, _ = strings.Cut(to, "?")
	} else {
		to = file
	}
	for _, name := range from.Secrets.Common {
		fmt.Fprintf(out, "secrets  %s is a word or a number that anything may hold: it was replaced only where it is named as a secret (docs/capsule.md)\n", name)
	}
	return tellCapsule(out, contents, to, file)
}

// tellCapsule says what is in a capsule, and what is not.
func tellCapsule(out io.Writer, c capsule.Contents, where, file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "capsule  %s, %s\nrun      %s: %s, %s to %s\n", where, format.Bytes(info.Size()), c.TestID, c.Verdict, format.Time(c.Started), format.Time(c.Ended))
	if p := c.Prometheus; p.Missing == "" {
		fmt.Fprintf(out, "data     %s in %s, from %s to %s\n", format.Count(p.Samples+p.Histograms, "sample"), format.Plural(p.Series, "series", "series"), format.Time(p.From), format.Time(p.To))
	} else {
		fmt.Fprintf(out, "data     none of Prometheus: %s\n", p.Missing)
	}
	if len(c.Redacted) > 0 {
		fmt.Fprintf(out, "secrets  were replaced in %s\n", strings.Join(c.Redacted, ", "))
	}
	for _, sentence := range c.LeftOut {
		fmt.Fprintf(out, "left out: %s\n", sentence)
	}
	return nil
}

func openCommand() *cobra.Command {
	var dir string
	var check bool
	cmd := &cobra.Command{
		Use:   "open ARCHIVE",
		Short: "Show the evidence of a run again: Prometheus, and Grafana where there is Docker, on exactly its time",
		Long: "open checks every file of a capsule by its checksum, unpacks it, and starts Prometheus (the program, or in Docker) on the data of\n" +
			"the run and, where there is Docker, Grafana with the dashboards. It runs until Ctrl-C, and leaves nothing running.\n" +
			"ARCHIVE is a file, or s3://BUCKET/NAME.",
		Args: oneArg("archive that `soak capsule` made"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			err := openCapsule(ctx, args[0], dir, check, cmd.OutOrStdout())
			if ctx.Err() != nil && errors.Is(err, context.Canceled) {
				return nil // Ctrl-C is how it ends, however far it was
			}
			return err
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "folder to unpack to, which stays (default: one that is removed at the end)")
	cmd.Flags().BoolVar(&check, "check", false, "only check the archive, and say what is in it")
	return cmd
}

func openCapsule(ctx context.Context, archive, dir string, check bool, out io.Writer) (err error) {
	tmp, err := os.MkdirTemp("", "soak-open-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	where := archive
	if store.IsBucket(archive) {
		archive = filepath.Join(tmp, "archive")
		if err := store.Download(ctx, where, archive); err != nil {
			return err
		}
		where, _, _ = strings.Cut(where, "?")
	}
	if dir == "" || check {
		dir = filepath.Join(tmp, "capsule")
	}
	contents, err := capsule.Open(ctx, archive, dir)
	if err != nil {
		return err
	}
	if err := tellCapsule(out, contents, where, archive); err != nil || check {
		return err
	}
	report := filepath.Join(dir, capsule.ResultsDir, "report.html")
	if _, err := os.Stat(report); err == nil {
		fmt.Fprintf(out, "report   %s\n", report)
	} else {
		fmt.Fprintf(out, "report   none in it: `soak report %s` makes it\n", filepath.Dir(report))
	}
	return show(ctx, contents, dir, tmp, out)
}

// shownAround is what is shown of the time before and after the run.
const shownAround = 30 * time.Second
