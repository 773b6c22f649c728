package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"
)

// A keep holds the settings of `soak-aws down` for archives of runs.
type keep struct {
	program string // soak
	results string // folder of results
	without bool   // make no archive
	all     bool   // and delete those in the bucket
}

const (
	archivesPrefix = "archives/"
	shardsPrefix   = "shards/"
	// stillRuns is the age up to which a checkpoint means that its runner runs: there is one each 30 s.
	stillRuns = 90 * time.Second
)

// keepEvidence makes an archive of each run in the bucket that has none, also of runs of other users, and returns the
// archives there.
func (d *deployment) keepEvidence(ctx context.Context, c *cloud, k keep) (bucket string, archives []string, err error) {
	out, err := d.outputs(ctx)
	if err != nil || out.Bucket == "" || k.all {
		return "", nil, nil //nolint:nilerr // terraform knows no resource
	}
	shards, err := c.objects(ctx, out.Bucket, shardsPrefix)
	if isMissing(err) {
		return "", nil, nil
	}
	var archived []object
	if err == nil {
		archived, err = c.objects(ctx, out.Bucket, archivesPrefix)
	}
	if err != nil {
		return "", nil, fmt.Errorf("list the runs in the bucket %s: %w; nothing was destroyed.\n  with the bucket, whatever is in it: make aws-down ALL=1", out.Bucket, err)
	}
	latest := map[string]time.Time{} // checkpoint by run
	for _, o := range shards {
		run, _, _ := strings.Cut(strings.TrimPrefix(o.Key, shardsPrefix), "/")
		if o.LastModified.After(latest[run]) {
			latest[run] = o.LastModified
		}
	}
	for _, o := range archived {
		delete(latest, strings.TrimSuffix(path.Base(o.Key), ".tar.gz"))
		archives = append(archives, o.Key)
	}
	runs := slices.Sorted(maps.Keys(latest))
	if len(runs) == 0 || k.without || !d.agreed(runs, out.Bucket) {
		return out.Bucket, archives, nil
	}
	for _, run := range runs {
		if age := time.Since(latest[run]); age < stillRuns && !k.judged(run) {
			return "", nil, fmt.Errorf("the soak %s is running: its last checkpoint is %v old; nothing was destroyed.\n  follow it: bin/soak-aws attach %[1]s\n  end it:    make aws-down ARCHIVE=0",
				run, age.Round(time.Second))
		}
	}
	if err := d.makeArchives(ctx, c, out, k, runs); err != nil {
		return "", nil, fmt.Errorf("%w; nothing was destroyed, and the hosts still end themselves.\n  again:     make aws-down\n  without:   make aws-down ARCHIVE=0", err)
	}
	archived, err = c.objects(ctx, out.Bucket, archivesPrefix)
	archives = nil
	for _, o := range archived {
		archives = append(archives, o.Key)
	}
	return out.Bucket, archives, err
}

// judged reports whether the results of a run are here.
func (k keep) judged(run string) bool {
	_, err := os.Stat(filepath.Join(k.results, run, "verdict.json"))
	return err == nil
}

// agreed asks the user if there is a terminal. The default is yes: destroyed evidence cannot be restored.
func (d *deployment) agreed(runs []string, bucket string) bool {
	if d.yes || !term.IsTerminal(int(os.Stdin.Fd())) {
		return true
	}
	fmt.Printf("Archive %s (results and Prometheus data) in s3://%s? [Y/n] ", strings.Join(runs, ", "), bucket)
	answer, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	return !strings.HasPrefix(strings.ToLower(strings.TrimSpace(answer)), "n")
}

// makeArchives runs `soak archive` for each run, with the stack's Prometheus if it can still be reached. A run that was judged on
// another machine is judged here first, from its shards.
func (d *deployment) makeArchives(ctx context.Context, c *cloud, out outputs, k keep, runs []string) error {
	env, args, done := c.wayToPrometheus(ctx, out)
	defer done()
	soak := func(args ...string) error {
		cmd := exec.CommandContext(ctx, k.program, args...) //nolint:gosec // G204: starts soak without a shell
		cmd.Stdout, cmd.Stderr, cmd.Env = os.Stdout, os.Stderr, append(os.Environ(), env...)
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		cmd.WaitDelay = time.Minute
		return cmd.Run()
	}
	for _, run := range runs {
		if !k.judged(run) {
			err := soak("merge", out.shardsOf(run), "--out", k.results) // its exit code is the verdict
			if !k.judged(run) {
				return fmt.Errorf("judge %s from its shards: %w", run, err)
			}
		}
		to := "s3://" + out.Bucket + "/" + strings.TrimSuffix(archivesPrefix, "/") + "?region=" + url.QueryEscape(out.Region)
		if err := soak(append([]string{"archive", filepath.Join(k.results, run), to}, args...)...); err != nil {
			return fmt.Errorf("archive %s: %w", run, err)
		}
	}
	return nil
}

// shardsOf returns the address of the shards of a run.
func (o outputs) shardsOf(run string) string {
	return "s3://" + path.Join(o.Bucket, shardsPrefix, cmp.Or(run, "TESTID")) + "?region=" + url.QueryEscape(o.Region)
}

// wayToPrometheus returns the variables with which soak reaches Prometheus, or why it cannot: a terminated host does not answer.
func (c *cloud) wayToPrometheus(ctx context.Context, out outputs) (env, args []string, done func()) {
	env = []string{"AWS_REGION=" + out.Region, "PROMETHEUS_URL="}
	without := func(err error) ([]string, []string, func()) {
		return env, []string{"--without-prometheus", err.Error()}, func() {}
	}
	values, err := c.parameters(ctx, out.Secrets)
	if err != nil {
		return without(err)
	}
	env = append(env, strings.Split(strings.TrimSpace(values[out.Secrets]), "\n")...) // soak replaces them in the archive
	t, err := openTunnel(ctx, out, stackEnd, 0, func(news string) { fmt.Fprintln(os.Stderr, news) })
	if err != nil {
		return without(err)
	}
	way, err := out.environment(values[out.Secrets], "", t.address)
	if err != nil {
		t.close()
		return without(err)
	}
	return append(env, way...), nil, t.close
}
