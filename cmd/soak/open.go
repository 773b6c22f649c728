package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/results/archive"
	"github.com/sse-soak/sse-soak/internal/run"
	"github.com/sse-soak/sse-soak/internal/shard/store"
)

func openCommand() *cobra.Command {
	var dir string
	var check bool
	cmd := &cobra.Command{
		Use:   "open ARCHIVE",
		Short: "Show an archived run: its report, and Prometheus with its data",
		Long: "open verifies the checksum of every file in an archive, and unpacks the archive. It prints the path of the report, and starts\n" +
			"the program prometheus with the data of the run. Ctrl-C stops Prometheus, and removes the unpacked\n" +
			"files unless --dir names their folder. ARCHIVE is a file, or s3://BUCKET/NAME.",
		Args: oneArg("archive that `soak archive` made"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := run.UntilSignal(cmd.Context())
			defer stop()
			err := openArchive(ctx, args[0], dir, check, cmd.OutOrStdout())
			if ctx.Err() != nil && errors.Is(err, context.Canceled) {
				return nil // Ctrl-C ends the command as intended
			}
			return err
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "folder to unpack into (default: a temporary folder)")
	cmd.Flags().BoolVar(&check, "check", false, "only check the archive and print a summary")
	return cmd
}

// openArchive unpacks an archive into dir ("": a temporary folder) and shows its data until ctx ends. With check it
// uses a temporary folder, and returns after it has printed the contents.
func openArchive(ctx context.Context, file, dir string, check bool, out io.Writer) (err error) {
	tmp, err := os.MkdirTemp("", "soak-open-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	location := file
	if store.IsBucket(file) {
		file = filepath.Join(tmp, "archive")
		if err := store.Download(ctx, location, file); err != nil {
			return err
		}
		location, _, _ = strings.Cut(location, "?")
	}
	if dir == "" || check {
		dir = filepath.Join(tmp, "run")
	}
	contents, err := archive.Open(ctx, file, dir)
	if err != nil {
		return err
	}
	if err := printContents(out, contents, location, file); err != nil || check {
		return err
	}
	report := filepath.Join(dir, results.PageFile)
	if _, err := os.Stat(report); err == nil {
		fmt.Fprintf(out, "report   %s\n", report)
	} else {
		fmt.Fprintf(out, "report   none; run `soak report %s` to write it\n", dir)
	}
	return showData(ctx, contents, dir, tmp, out)
}

// graphMargin is the time that the graph shows before the run, and also after it.
const graphMargin = 30 * time.Second

// showData shows the data of an unpacked archive in a Prometheus server until ctx ends. Without data it only waits. It
// returns an error if Prometheus ends first.
func showData(ctx context.Context, c archive.Contents, dir, tmp string, out io.Writer) error {
	if c.Prometheus.Missing != "" {
		fmt.Fprintln(out, "The archive has no Prometheus data, so nothing is started. Ctrl-C removes the unpacked files, unless --dir names their folder.")
		<-ctx.Done()
		return nil
	}
	prometheus, err := archive.StartPrometheus(ctx, tmp)
	if err != nil {
		return err
	}
	defer prometheus.Stop()
	started := time.Now()
	remote, err := archive.NewRemote(prometheus.URL)
	if err == nil {
		err = archive.Load(ctx, remote, filepath.Join(dir, archive.ExportFile))
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "loaded in %v\nprometheus  %s\nCtrl-C stops Prometheus.\n", time.Since(started).Round(100*time.Millisecond), graphURL(prometheus.URL, c))
	select {
	case <-ctx.Done():
		return nil
	case <-prometheus.Done():
		return fmt.Errorf("prometheus ended: %s", prometheus.LogEnd())
	}
}

func graphURL(prometheus string, c archive.Contents) string {
	length := c.Ended.Sub(c.Started) + 2*graphMargin
	query := url.Values{
		"g0.expr": {"testid:k6_streams:open"}, "g0.tab": {"0"}, "g0.end_input": {c.Ended.Add(graphMargin).UTC().Format(time.DateTime)},
		"g0.range_input": {fmt.Sprintf("%ds", int(length.Round(time.Second).Seconds()))},
	}
	return prometheus + "/graph?" + query.Encode()
}
