package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
)

type downOptions struct {
	results        string        // folder of results
	withoutArchive bool          // do not archive runs
	withBucket     bool          // do not archive runs, and delete the bucket with its archives
	lag            time.Duration // maximum time for which AWS may still list destroyed resources
}

// checkpointAge returns the maximum age of the last checkpoint of a run in progress: twice the interval between
// checkpoints, but at least 3 minutes. The interval is a thousandth of the run's age, but at least 30 s
// (shard.CheckpointInterval). No run is older than its hosts; the bucket has no file with the start of a run.
func checkpointAge(hosts []host) time.Duration {
	age := 3 * time.Minute
	for _, h := range hosts {
		age = max(age, time.Since(h.Launch)/500)
	}
	return age
}

// down archives runs, destroys the deployment, and verifies that only a bucket with archives still costs money.
func (d *deployment) down(ctx context.Context, options downOptions) error {
	s, err := d.plannedSite(ctx)
	if err != nil {
		return err
	}
	archives, err := s.archive(ctx, options)
	if err != nil {
		return fmt.Errorf("%w (nothing was destroyed, and the hosts terminate themselves later)\n"+
			"  retry:     %s\n  skip:      %[2]s ARCHIVE=0, or ALL=1 to delete the bucket too", err, d.makeCommand("aws-down"))
	}
	var targets []string
	archiveBucket := ""
	if len(archives) > 0 { // destroy everything except the bucket
		archiveBucket = s.output.Bucket
		targets = []string{"-target=module.network", "-target=module.guard", "-target=module.stack", "-target=module.runners",
			"-target=module.storage.aws_s3_object.file"}
	}
	if err := d.change(ctx, "destroy", targets...); err != nil {
		return fmt.Errorf("%w (the remaining resources continue to cost money)\n  continue:  %s", err, d.makeCommand("aws-down"))
	}
	if err := s.verifyDestroyed(ctx, archiveBucket, options.lag, 5*time.Second); err != nil || archiveBucket == "" {
		return err
	}
	fmt.Printf("kept: the bucket %s, which costs cents. Each archive is deleted %s after its creation. To open an archive:\n",
		archiveBucket, format.Count(s.settings.RetentionDays, "day"))
	for _, key := range archives {
		fmt.Printf("  bin/soak open '%s'\n", s.location(key))
	}
	fmt.Printf("  %s ALL=1    # deletes the bucket with its archives\n", d.makeCommand("aws-down"))
	return nil
}

// archive archives each run, of any user, that has shards but no archive in the bucket. It returns the keys of all
// archives, and an error if a run is in progress. With withoutArchive, it returns only the existing archives; with
// withBucket, it returns none.
func (s site) archive(ctx context.Context, options downOptions) (archives []string, err error) {
	if s.output.Bucket == "" || options.withBucket {
		return nil, nil
	}
	var objects []struct {
		Key          string
		LastModified time.Time
	}
	err = s.aws.call(ctx, &objects, "s3api", "list-objects-v2", "--bucket", s.output.Bucket,
		"--query", "Contents[].{Key:Key,LastModified:LastModified}")
	if err != nil && code(err) != "NoSuchBucket" {
		return nil, fmt.Errorf("list the runs in the bucket %s: %w", s.output.Bucket, err)
	}
	latest := map[string]time.Time{} // time of the last checkpoint, by run
	for _, o := range objects {
		run, isShard := strings.CutPrefix(path.Dir(o.Key), "shards/")
		if isShard && o.LastModified.After(latest[run]) {
			latest[run] = o.LastModified
		}
	}
	for _, o := range objects {
		if name, isArchive := strings.CutPrefix(o.Key, "archives/"); isArchive {
			delete(latest, strings.TrimSuffix(name, ".tar.gz"))
			archives = append(archives, o.Key)
		}
	}
	runs := slices.Sorted(maps.Keys(latest))
	if len(runs) == 0 || options.withoutArchive {
		return archives, nil
	}
	hosts, err := s.aws.hosts(ctx, tagFilter("Run", s.settings.Name))
	if err != nil {
		return nil, fmt.Errorf("read the age of the hosts: %w", err)
	}
	for _, run := range runs {
		if age := time.Since(latest[run]); age < checkpointAge(hosts) && !options.hasVerdict(run) {
			return nil, fmt.Errorf("the soak %s may be running: its last checkpoint is %v old; follow it with %s",
				run, age.Round(time.Second), s.soakAWS("attach "+run))
		}
		archives = append(archives, "archives/"+run+".tar.gz")
	}
	return archives, s.archiveRuns(ctx, options, runs)
}

func (o downOptions) hasVerdict(run string) bool {
	_, err := os.Stat(filepath.Join(o.results, run, "verdict.json"))
	return err == nil
}

// archiveRuns archives runs, with data of the stack's Prometheus if the stack is reachable. It first judges runs
// without a verdict.
func (s site) archiveRuns(ctx context.Context, options downOptions, runs []string) error {
	var flags []string
	address := ""
	if t, err := openTunnel(ctx, s.output, "stack", stackPort, 0); err != nil {
		flags = []string{"--without-prometheus", err.Error()}
	} else {
		defer t.close()
		address = t.address
	}
	env := append(os.Environ(), s.environment(address)...) // soak removes these secrets from the archive
	soak := func(args ...string) error {
		cmd := exec.CommandContext(ctx, s.program, args...) // #nosec G204 -- starts soak without a shell
		cmd.Stdout, cmd.Stderr, cmd.Env = os.Stdout, os.Stderr, env
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		cmd.WaitDelay = time.Minute
		return cmd.Run()
	}
	for _, run := range runs {
		if !options.hasVerdict(run) {
			err := soak("merge", s.location("shards", run), "--out", options.results) // the exit code depends on the verdict
			if !options.hasVerdict(run) {
				return fmt.Errorf("judge %s from its shards: %w", run, err)
			}
		}
		if err := soak(append([]string{"archive", filepath.Join(options.results, run), s.location("archives")}, flags...)...); err != nil {
			return fmt.Errorf("archive %s: %w", run, err)
		}
	}
	return nil
}

// verifyDestroyed waits up to lag until AWS lists no resource that costs money, except archiveBucket ("": no
// exception). It searches by tag, independently of the state.
func (s site) verifyDestroyed(ctx context.Context, archiveBucket string, lag, pause time.Duration) error {
	var costlyResources, otherResources []string
	err := poll(ctx, pause, lag, func() (destroyed bool, err error) {
		_, costlyResources, otherResources, err = s.aws.findTagged(ctx, "Run", s.settings.Name)
		costlyResources = slices.DeleteFunc(costlyResources, func(arn string) bool { return archiveBucket != "" && arn == "arn:aws:s3:::"+archiveBucket })
		return len(costlyResources) == 0, err
	})
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("resources in %s that have the tag Run=%s and still cost money: %d\n  %s\n"+
			"  continue:  %s, or delete them in the AWS console",
			s.settings.Region, s.settings.Name, len(costlyResources), strings.Join(costlyResources, "\n  "), s.makeCommand("aws-down"))
	case err != nil:
		return fmt.Errorf("terraform destroy succeeded, but the result could not be verified: %w", err)
	}
	for _, arn := range otherResources {
		fmt.Printf("still listed by AWS, which may list a deleted resource for hours: %s\n", arn)
	}
	bucket := "bucket"
	if archiveBucket != "" {
		bucket = "other bucket"
	}
	fmt.Printf("no host, disk or %s in %s has the tag Run=%s anymore\n", bucket, s.settings.Region, s.settings.Name)
	return nil
}

// findTagged returns the resources with a tag. costlyResources has the hosts, disks and buckets that exist. The other
// resources are free, or AWS still lists them after their deletion.
func (c *cloud) findTagged(ctx context.Context, key, value string) (hosts []host, costlyResources, otherResources []string, err error) {
	hosts, err = c.hosts(ctx, tagFilter(key, value))
	for _, h := range hosts {
		costlyResources = append(costlyResources, h.ID)
	}
	var disks, arns []string
	err = cmp.Or(err,
		c.call(ctx, &disks, "ec2", "describe-volumes", "--filters", tagFilter(key, value), "--query", "Volumes[].VolumeId"),
		c.call(ctx, &arns, "resourcegroupstaggingapi", "get-resources", "--tag-filters", "Key="+key+",Values="+value,
			"--query", "ResourceTagMappingList[].ResourceARN"))
	costlyResources = append(costlyResources, disks...)
	for _, arn := range arns {
		bucket, isBucket := strings.CutPrefix(arn, "arn:aws:s3:::")
		switch {
		case strings.Contains(arn, ":instance/"), strings.Contains(arn, ":volume/"): // already in costlyResources if it exists
		case isBucket && code(c.call(ctx, nil, "s3api", "head-bucket", "--bucket", bucket)) != "404":
			costlyResources = append(costlyResources, arn)
		default:
			otherResources = append(otherResources, arn)
		}
	}
	return hosts, costlyResources, otherResources, err
}

// sweep lists the resources of one deployment, or of all, by their tags, even if the state of terraform is lost. With
// endHosts it terminates the hosts, which cost the most.
func (d *deployment) sweep(ctx context.Context, region string, endHosts bool) (err error) {
	if endHosts && d.name == "" {
		return errors.New("--end-hosts requires --name NAME, because it terminates the hosts of one deployment")
	}
	var s site
	if region != "" {
		s.aws, err = connect(ctx, region)
	} else if s, err = d.plannedSite(ctx); err != nil {
		err = fmt.Errorf("%w; pass --region to sweep without terraform", err)
	}
	if err != nil {
		return err
	}
	key, value := "Project", "sse-soak"
	if d.name != "" {
		key, value = "Run", d.name
	}
	hosts, costlyResources, otherResources, err := s.aws.findTagged(ctx, key, value)
	if err != nil {
		return err
	}
	fmt.Printf("resources in %s with the tag %s=%s: %d that cost money, %d that are free or already deleted\n",
		s.aws.region, key, value, len(costlyResources), len(otherResources))
	for _, resource := range append(costlyResources, otherResources...) {
		fmt.Println("  " + resource)
	}
	if len(costlyResources)+len(otherResources) > 0 {
		fmt.Println("Delete these resources in the AWS console, hosts first; deleting the VPC then deletes its other contents.")
	}
	args := []string{"ec2", "terminate-instances", "--instance-ids"}
	for _, h := range hosts {
		fmt.Printf("host %s of %s, owner: %s\n", h.ID, h.Run, h.Owner)
		args = append(args, h.ID)
	}
	switch {
	case !endHosts, len(hosts) == 0:
		return nil
	case !d.skipConfirm:
		fmt.Printf("Enter yes to terminate %s: ", format.Count(len(hosts), "host"))
		if line, _ := bufio.NewReader(os.Stdin).ReadString('\n'); strings.TrimSpace(line) != "yes" {
			return errors.New("not confirmed, so no host was terminated; pass --yes to skip the question")
		}
	}
	if err := s.aws.call(ctx, nil, args...); err != nil {
		return fmt.Errorf("terminate hosts, which continue to cost money: %w", err)
	}
	fmt.Println(format.Plural(len(hosts), "host is being terminated with its disk", "hosts are being terminated with their disks"))
	return nil
}
