package main

import (
	"bufio"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
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
	without bool   // make no archive
	all     bool   // and delete those in the bucket
}

// archivesPrefix is the prefix of archives in the bucket.
const archivesPrefix = "archives"

// runsFile returns the name of a file that lists the folders of runs without an archive, one per line.
func (d *deployment) runsFile() string {
	if d.name != "" {
		return filepath.Join(d.dir, ".runs-"+d.name)
	}
	return filepath.Join(d.dir, ".runs")
}

// runs returns those of the folders that exist.
func (d *deployment) runs() (folders []string, err error) {
	text, err := os.ReadFile(d.runsFile())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for folder := range strings.Lines(string(text)) {
		folder = strings.TrimSpace(folder)
		if _, err := os.Stat(filepath.Join(folder, "verdict.json")); err == nil && !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}
	return folders, err
}

// remember notes the folder of a run; before is the one that was the latest before it.
func (d *deployment) remember(before, latest string) error {
	if latest == "" || latest == before {
		return nil // it did not begin
	}
	f, err := os.OpenFile(d.runsFile(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, latest)
	return errors.Join(err, f.Close())
}

// latestRun is the folder of the last run among the arguments' results, "" where there is none.
func latestRun(args []string) string {
	out, given := valueOf("--out", args)
	if !given {
		out = "results"
	}
	folder, err := filepath.EvalSymlinks(filepath.Join(out, "latest"))
	if err == nil {
		folder, err = filepath.Abs(folder)
	}
	if err != nil {
		return ""
	}
	return folder
}

// keepEvidence makes an archive of each run that has none, and returns the archives in the bucket.
func (d *deployment) keepEvidence(ctx context.Context, c *cloud, k keep) (bucket string, archives []string, err error) {
	out, err := d.outputs(ctx)
	if err != nil || out.Bucket == "" || k.all {
		return "", nil, nil //nolint:nilerr // terraform knows no resource
	}
	runs, err := d.runs()
	if err != nil {
		return "", nil, err
	}
	if len(runs) > 0 && !k.without && d.agreed(runs, out.Bucket) {
		if err := d.makeArchives(ctx, c, out, k.program, runs); err != nil {
			return "", nil, fmt.Errorf("%w; nothing was destroyed, and the hosts still end themselves.\n  again:     make aws-down\n  without:   make aws-down ARCHIVE=0", err)
		}
	}
	archives, err = c.archives(ctx, out.Bucket)
	switch {
	case isNotFound(err):
		return "", nil, nil
	case err != nil:
		return "", nil, fmt.Errorf("list the archives in the bucket %s: %w; nothing was destroyed.\n  with the bucket, whatever is in it: make aws-down ALL=1", out.Bucket, err)
	}
	return out.Bucket, archives, nil
}

// agreed asks the user if there is a terminal. The default is yes: destroyed evidence cannot be restored.
func (d *deployment) agreed(runs []string, bucket string) bool {
	if d.yes || !term.IsTerminal(int(os.Stdin.Fd())) {
		return true
	}
	var names []string
	for _, run := range runs {
		names = append(names, filepath.Base(run))
	}
	fmt.Printf("Archive %s (results and Prometheus data) in s3://%s? [Y/n] ", strings.Join(names, ", "), bucket)
	answer, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	return !strings.HasPrefix(strings.ToLower(strings.TrimSpace(answer)), "n")
}

// makeArchives runs `soak archive` for each run, with the stack's Prometheus if it can still be reached.
func (d *deployment) makeArchives(ctx context.Context, c *cloud, out outputs, program string, runs []string) error {
	env, args, done := c.wayToPrometheus(ctx, out)
	defer done()
	for _, run := range runs {
		to := "s3://" + path.Join(out.Bucket, archivesPrefix) + "?region=" + url.QueryEscape(out.Region)
		cmd := exec.CommandContext(ctx, program, append([]string{"archive", run, to}, args...)...) //nolint:gosec // G204: starts soak without a shell
		cmd.Stdout, cmd.Stderr, cmd.Env = os.Stdout, os.Stderr, append(os.Environ(), env...)
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		cmd.WaitDelay = time.Minute
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("archive %s: %w", run, err)
		}
	}
	return os.Remove(d.runsFile())
}

// wayToPrometheus returns the variables with which soak reaches Prometheus, or why it cannot: a terminated host does not answer.
func (c *cloud) wayToPrometheus(ctx context.Context, out outputs) (env, args []string, done func()) {
	env, done = []string{"AWS_REGION=" + out.Region, "PROMETHEUS_URL="}, func() {}
	without := func(err error) ([]string, []string, func()) {
		return env, []string{"--without-prometheus", err.Error()}, done
	}
	values, err := c.parameters(ctx, out.Secrets)
	if err != nil {
		return without(err)
	}
	env = append(env, strings.Split(strings.TrimSpace(values[out.Secrets]), "\n")...) // soak replaces them in the archive
	t, err := openTunnel(ctx, out, 0, func(news string) { fmt.Fprintln(os.Stderr, news) })
	if err != nil {
		return without(err)
	}
	done = t.close
	way, err := out.environment(values[out.Secrets], "", t.address)
	if err != nil {
		return without(err)
	}
	return append(env, way...), nil, done
}

// archives returns the names of the archives in a bucket.
func (c *cloud) archives(ctx context.Context, bucket string) (names []string, err error) {
	text, err := c.api.send(ctx, request{service: "s3", path: "/" + bucket, query: url.Values{"list-type": {"2"}, "prefix": {archivesPrefix + "/"}}})
	if err != nil {
		return nil, err
	}
	var list struct {
		Contents []struct{ Key string }
	}
	if err := xml.Unmarshal(text, &list); err != nil {
		return nil, err
	}
	for _, object := range list.Contents {
		names = append(names, object.Key)
	}
	return names, nil
}

// allButTheBucket are the arguments with which terraform destroys all that it knows but the bucket and what guards it. What
// hosts were made from goes too. None: the bucket is all there is.
func (d *deployment) allButTheBucket(ctx context.Context) (targets []string, err error) {
	list, err := d.command(ctx, "state", "list").Output()
	if err != nil {
		return nil, fmt.Errorf("terraform state list: %w", err)
	}
	for address := range strings.Lines(string(list)) {
		address = strings.TrimSpace(address)
		ofBucket := strings.HasPrefix(address, "module.storage.") && !strings.HasPrefix(address, "module.storage.aws_s3_object.")
		if address == "" || ofBucket || strings.HasPrefix(address, "data.") || strings.Contains(address, ".data.") {
			continue
		}
		targets = append(targets, "-target="+address)
	}
	return targets, nil
}

// printKept prints the bucket and the archives that are kept.
func printKept(s settings, bucket string, archives []string) {
	fmt.Printf("kept: the bucket %s, which costs cents and in which nothing runs. Each archive is deleted %d days after it was made:\n", bucket, s.RetentionDays)
	for _, name := range archives {
		fmt.Printf("  bin/soak open 's3://%s/%s?region=%s'\n", bucket, name, url.QueryEscape(s.Region))
	}
	fmt.Println("  make aws-down ALL=1    # deletes the bucket with all that is in it")
}
