package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/results/archive"
	"github.com/sse-soak/sse-soak/internal/run"
	"github.com/sse-soak/sse-soak/internal/shard/store"
)

func archiveCommand() *cobra.Command {
	out := plan.DefaultLocal().Out
	var prometheus, skipReason string
	cmd := &cobra.Command{
		Use:   "archive TESTID|DIR [FILE]",
		Short: "Pack a run and its Prometheus data into one archive",
		Long: "archive packs the folder of a run, and the Prometheus data of the same period, into one tar.gz with checksums.\n" +
			"`soak open` shows the archived run (docs/report.md#archive-a-run). FILE is a file, a folder, or s3://BUCKET/PREFIX\n" +
			"(default: TESTID" + archive.Suffix + " next to the folder of the run).\n\n" +
			"archive gets the data by remote read from the Prometheus server at --prometheus or PROMETHEUS_URL. The address may contain a\n" +
			"user name and a password. If no address is set or the server does not answer, the archive has no Prometheus data, and\n" +
			"states the reason. Secrets are redacted.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 && len(args) != 2 {
				return usageError{Err: errors.New("soak archive needs one run (its test id or folder), and at most one file")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := plan.FlagsFromEnvironment(cmd.Flags()); err != nil {
				return usageError{Err: err}
			}
			ctx, stop := run.UntilSignal(cmd.Context())
			defer stop()
			from := archive.Source{Folder: folderOf(args[0], out), Prometheus: cmp.Or(prometheus, os.Getenv("PROMETHEUS_URL")), SkipReason: skipReason}
			return makeArchive(ctx, from, strings.Join(args[1:], ""), cmd.OutOrStdout())
		},
	}
	plan.AddFlags(cmd.Flags(), []plan.Setting{{Name: "OUT", Value: &out, Help: "folder of all runs, which contains TESTID"}})
	cmd.Flags().StringVar(&prometheus, "prometheus", "", "address of the Prometheus server with the run's data (default: PROMETHEUS_URL)")
	cmd.Flags().StringVar(&skipReason, "without-prometheus", "", "omit the Prometheus data, and state this reason in the archive")
	return cmd
}

// folderOf returns the folder of a run, with links resolved. name is the path of the folder, or its name in out, such
// as latest.
func folderOf(name, out string) string {
	if info, err := os.Stat(name); err != nil || !info.IsDir() {
		name = filepath.Join(out, name)
	}
	if target, err := filepath.EvalSymlinks(name); err == nil {
		return target
	}
	return name
}

// makeArchive makes an archive and prints the result. to is a file, a folder, a bucket, or "" for the parent of the
// folder of the run. An existing archive with Prometheus data is kept if the new one has none.
func makeArchive(ctx context.Context, from archive.Source, to string, out io.Writer) error {
	from.Version = version()
	dotenv := ".env"
	if compose, err := run.Locate("compose.yaml"); err == nil {
		dotenv = filepath.Join(filepath.Dir(compose), dotenv)
	}
	from.Secrets = archive.NewSecrets(os.Environ(), dotenv, from.Prometheus)
	name := filepath.Base(from.Folder) + archive.Suffix
	file := archiveFile(from.Folder, to, name)
	location := file
	if store.IsBucket(to) {
		tmp, err := os.MkdirTemp("", "soak-archive-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(tmp)
		if path, _, _ := strings.Cut(to, "?"); !strings.HasSuffix(path, archive.Suffix) {
			to = store.Join(to, name)
		}
		location, _, _ = strings.Cut(to, "?")
		file = filepath.Join(tmp, name)
	}
	contents, err := archive.Make(ctx, from, file)
	if err == nil && store.IsBucket(to) {
		err = uploadArchive(ctx, contents, file, to)
	}
	if errors.Is(err, archive.ErrHasData) {
		fmt.Fprintf(out, "archive  %s was kept: %v\ndata     no Prometheus data this time: %s\nName another file to make a second archive.\n",
			location, err, contents.Prometheus.Missing)
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range from.Secrets.Common {
		fmt.Fprintf(out, "secrets  the value of %s is a common word or a number, so it was redacted only next to the name of a secret (docs/report.md#archive-a-run)\n", name)
	}
	return printContents(out, contents, location, file)
}

func archiveFile(folder, to, name string) string {
	if to == "" {
		return filepath.Join(filepath.Dir(folder), name)
	}
	if info, err := os.Stat(to); err == nil && info.IsDir() {
		return filepath.Join(to, name)
	}
	return to
}

// uploadArchive uploads an archive. It returns ErrHasData if the archive in the bucket has Prometheus data and the new
// one has none.
func uploadArchive(ctx context.Context, contents archive.Contents, file, to string) error {
	if contents.Prometheus.Missing != "" {
		existing := file + ".existing"
		if store.Download(ctx, to, existing) == nil && archive.HasData(existing, contents.TestID) {
			return archive.ErrHasData
		}
	}
	return store.Upload(ctx, file, to)
}

// printContents describes an archive. file is its path on this machine; location is its path or URL for the user.
func printContents(out io.Writer, c archive.Contents, location, file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "archive  %s, %s\n", location, format.Bytes(info.Size()))
	period := "at an unknown time"
	if c.Started.Unix() > 0 {
		period = format.Time(c.Started) + " to " + format.Time(c.Ended)
	}
	fmt.Fprintf(out, "run      %s: %s, %s\n", c.TestID, c.Verdict, period)
	if p := c.Prometheus; p.Missing == "" {
		fmt.Fprintf(out, "data     %s in %s, from %s to %s\n", format.Count(p.Samples+p.Histograms, "sample"),
			format.Plural(p.Series, "series", "series"), format.Time(p.From), format.Time(p.To))
	} else {
		fmt.Fprintf(out, "data     no Prometheus data: %s\n", p.Missing)
	}
	if len(c.Redacted) > 0 {
		fmt.Fprintf(out, "secrets  were redacted in %s\n", strings.Join(c.Redacted, ", "))
	}
	for _, sentence := range c.Omitted {
		fmt.Fprintf(out, "files    %s\n", sentence)
	}
	return nil
}
