package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/run/live"
	"github.com/sse-soak/sse-soak/internal/safefile"
	"github.com/sse-soak/sse-soak/internal/shard/store"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// Intervals between two polls of a remote run. Requests to a bucket cost money, so it is polled less often.
const (
	folderInterval = 5 * time.Second
	bucketInterval = 15 * time.Second
)

// pauseFactor is the pause after a poll as a multiple of the poll's duration, so polls run for less than 1/20 of the
// time.
const pauseFactor = 20

// A WatchConfig selects a run of another session, and configures the page that shows it.
type WatchConfig struct {
	Location string                 // location of the run's shards, or the folder of the run
	Address  string                 // of the page; "": a free port of this machine
	OpenURL  func(url string) error // opens the page in a browser; nil: the page is not opened
	Stdout   io.Writer
	Interval time.Duration // between two polls; 0: the default of the location
}

// Watch shows a run of another session until the run ends, from the checkpoints of its runners. It does not write to
// the location. After Ctrl-C it returns nil.
func Watch(ctx context.Context, w WatchConfig) error {
	ctx, stop := UntilSignal(ctx)
	defer stop()
	e := &remoteRun{WatchConfig: w, page: &live.Files{Location: w.Location}}
	if err := e.open(ctx); err != nil {
		return UsageError{err}
	}
	defer e.close()
	if path := e.report(); path != "" {
		fmt.Fprintf(w.Stdout, "the run is over: %s\n", path)
		return nil
	}
	server, err := live.Listen(cmp.Or(liveAddress(w.Address), plan.LiveAddress), e.page, pageInterval)
	if err != nil {
		return UsageError{err}
	}
	defer server.Close()
	offerLive(w.Stdout, server.URL(), w.OpenURL)
	path := e.follow(ctx)
	if path == "" {
		return nil
	}
	content, err := safefile.Read(path, safefile.Document)
	if err != nil {
		return fmt.Errorf("show the report: %w", err)
	}
	fmt.Fprintf(w.Stdout, "the run is over: %s\n", e.reportLocation(path))
	server.Finish(ctx, content)
	return nil
}

type remoteRun struct {
	WatchConfig
	page        *live.Files
	source      store.Store
	dir         results.Dir // "": the files are fetched to scratch
	scratch     string
	stamp       string // stampOf the files that the page shows; "": none yet
	warnedEmpty bool   // a warning about an empty location was printed
	isOver      bool   // the bucket has run.json, so `soak run` no longer waits for runners, even if one was killed
}

func (e *remoteRun) open(ctx context.Context) (err error) {
	if e.source, err = store.Open(ctx, e.Location); err != nil {
		return err
	}
	if folder, ok := e.source.(store.Folder); ok {
		e.dir = results.Dir(folder)
		if info, err := os.Stat(string(e.dir)); err != nil || !info.IsDir() {
			return fmt.Errorf("%s is not a folder; pass the folder of a run, such as results/latest, or a bucket", e.Location)
		}
		return nil
	}
	e.scratch, err = os.MkdirTemp("", "soak-live-")
	return err
}

func (e *remoteRun) close() {
	_ = e.source.Close()
	if e.scratch != "" {
		_ = os.RemoveAll(e.scratch)
	}
}

// reportLocation returns the path of the report. For a run in a bucket, whose report is in a temporary folder, it
// returns a clause with the command that writes the report.
func (e *remoteRun) reportLocation(path string) string {
	if e.dir != "" {
		return path
	}
	return "`soak merge " + report.Shell(e.Location) + "` writes its report"
}

func (e *remoteRun) follow(ctx context.Context) string {
	end := time.Now() // last time at which `soak run` may have waited for a runner
	for {
		start := time.Now()
		err := e.poll(ctx)
		hasEnded := e.page.Ended() || e.isOver
		if !hasEnded {
			end = time.Now()
		}
		switch {
		case ctx.Err() != nil:
			return ""
		case err != nil:
			e.page.SetNotice(err.Error() + "; trying again")
		case hasEnded && e.dir == "":
			if path, complete, err := e.judge(); err == nil && (complete || time.Since(end) > cmp.Or(10*e.Interval, deliverTimeout)) {
				return path
			}
			e.page.SetNotice("all runners have ended; waiting for the other files of the run")
		case hasEnded:
			e.page.SetNotice("all runners have ended; if no `soak run` waits for them, write the verdict and the report with `soak merge " + report.Shell(e.Location) + "`")
		}
		if path := e.report(); path != "" {
			return path
		}
		interval := cmp.Or(e.Interval, folderInterval)
		if e.dir == "" {
			interval = cmp.Or(e.Interval, bucketInterval)
		}
		select {
		case <-ctx.Done():
			return ""
		case <-time.After(max(interval, pauseFactor*time.Since(start))):
		}
	}
}

func (e *remoteRun) report() string {
	if e.dir == "" {
		return ""
	}
	path := e.dir.Path(results.PageFile)
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

// poll shows the current content of the files. An empty folder is not an error, but an empty bucket is.
func (e *remoteRun) poll(ctx context.Context) error {
	dir := e.dir
	if dir == "" {
		names, err := e.source.Names(ctx)
		switch {
		case err != nil:
			return err
		case len(names) == 0:
			empty := fmt.Errorf("%s is empty; check the prefix: it must be the prefix of the run's --shards, followed by the test id", e.Location)
			if !e.warnedEmpty {
				fmt.Fprintln(e.Stdout, empty)
			}
			e.warnedEmpty = true
			return empty
		}
		var problems []string
		if dir, problems, err = results.Fetch(ctx, e.source, e.scratch, func(int, int) {}); err != nil {
			return err
		}
		if len(problems) > 0 {
			return errors.New(problems[0])
		}
		_, err = os.Stat(dir.Path(results.RunFile))
		e.isOver = err == nil
	}
	stamp := stampOf(dir)
	if stamp == "" || stamp == e.stamp && e.dir != "" {
		return nil
	}
	v, m, err := dir.Judge()
	if err != nil {
		return err
	}
	samples, err := resources.Read(dir.Path(results.ResourcesFile))
	if err != nil {
		samples = nil // another process may be writing the last line
	}
	e.page.Show(v, m, samples)
	e.stamp = stamp
	return nil
}

// stampOf returns a string that changes whenever a runner writes its shard; "" if there is no shard.
func stampOf(dir results.Dir) (stamp string) {
	for _, pattern := range []string{dir.Path(results.ShardsDir + "/*"), dir.Path("*.json.gz")} {
		paths, _ := filepath.Glob(pattern)
		for _, path := range paths {
			if info, err := os.Stat(path); err == nil {
				stamp += fmt.Sprintf("%s %d %d\n", path, info.Size(), info.ModTime().UnixNano())
			}
		}
	}
	return stamp
}

// judge writes verdict and report of the fetched files to their folder in scratch, and returns the path of the report.
// complete is false for an invalid verdict: files that soak uploads after the shards may be missing.
func (e *remoteRun) judge() (path string, complete bool, err error) {
	dirs, err := filepath.Glob(filepath.Join(e.scratch, "*", results.ShardsDir))
	if err != nil || len(dirs) != 1 {
		return "", false, fmt.Errorf("%s has the files of %d runs", e.Location, len(dirs))
	}
	dir := results.Dir(filepath.Dir(dirs[0]))
	v, err := Judge(dir, "", 0)
	if err != nil {
		return "", false, err
	}
	return dir.Path(results.PageFile), v.Verdict != verdict.Invalid, nil
}
