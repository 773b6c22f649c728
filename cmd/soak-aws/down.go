package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// kubeconfig returns the path of the kubeconfig, next to the state. It stays while there is a cluster, for `attach`.
func (d *deployment) kubeconfig() string {
	if d.name != "" {
		return filepath.Join(d.dir, ".kubeconfig-"+d.name)
	}
	return filepath.Join(d.dir, ".kubeconfig")
}

// down destroys, and gives hosts and disks some time to be gone.
func (d *deployment) down(ctx context.Context, lag time.Duration, k keep) error {
	// Destroying needs a value for each variable, though none matters any more.
	d.env = append(d.env, anyFiles...)
	s, err := d.initialized(ctx)
	if err != nil {
		return err
	}
	c, err := connect(ctx, s.Region)
	if err != nil {
		return err
	}
	bucket, archives, err := d.keepEvidence(ctx, c, k)
	if err != nil {
		return err
	}
	if err := d.destroy(ctx, len(archives) > 0); err != nil {
		return fmt.Errorf("%w; the rest continues to cost money.\n  continue:  %s", err, d.target("aws-down"))
	}
	if err := os.Remove(d.kubeconfig()); err != nil && !os.IsNotExist(err) {
		return err
	}
	if len(archives) == 0 {
		bucket = ""
	}
	if err := c.verifyGone(ctx, s, bucket, lag, 5*time.Second); err != nil {
		return err
	}
	if bucket == "" {
		return nil
	}
	fmt.Printf("kept: the bucket %s, which costs cents and in which nothing runs. Each archive is deleted %d days after it was made:\n", bucket, s.RetentionDays)
	for _, name := range archives {
		fmt.Printf("  bin/soak open 's3://%s/%s?region=%s'\n", bucket, name, url.QueryEscape(s.Region))
	}
	fmt.Println("  make aws-down ALL=1    # deletes the bucket with all that is in it")
	return nil
}

// destroy takes all down, but for the bucket if it is kept.
func (d *deployment) destroy(ctx context.Context, keepBucket bool) error {
	if !keepBucket {
		return d.change(ctx, "destroy")
	}
	list, err := d.command(ctx, "state", "list").Output()
	if err != nil {
		return fmt.Errorf("terraform state list: %w", err)
	}
	var targets []string
	for address := range strings.Lines(string(list)) {
		address = strings.TrimSpace(address)
		ofBucket := strings.HasPrefix(address, "module.storage.") && !strings.HasPrefix(address, "module.storage.aws_s3_object.")
		if address != "" && !ofBucket && !strings.HasPrefix(address, "data.") && !strings.Contains(address, ".data.") {
			targets = append(targets, "-target="+address)
		}
	}
	if len(targets) == 0 {
		return nil // destroying without a target would take the bucket
	}
	return d.change(ctx, "destroy", targets...)
}

// verifyGone asks AWS, not the state, whether anything that costs money still carries the tag, but for a bucket that is kept.
func (c *cloud) verifyGone(ctx context.Context, s settings, kept string, lag, every time.Duration) error {
	var costs, listed []string
	err := poll(ctx, every, lag, func() (gone bool, err error) {
		costs, listed, err = c.left(ctx, tag{"Run", s.Name})
		costs = slices.DeleteFunc(costs, func(arn string) bool { return kept != "" && arn == "arn:aws:s3:::"+kept })
		return len(costs) == 0, err
	})
	switch {
	case errors.Is(err, errTooLong):
		return fmt.Errorf("%d things in %s still cost money and carry the tag Run=%s:\n  %s\n  continue:  make aws-down, or delete them in the AWS console",
			len(costs), s.Region, s.Name, strings.Join(costs, "\n  "))
	case err != nil:
		return fmt.Errorf("terraform destroyed all that it knows, but the result could not be verified: %w", err)
	}
	for _, arn := range listed {
		fmt.Printf("still listed by its tag, which AWS forgets within hours: %s\n", arn)
	}
	what := "nothing"
	if kept != "" {
		what = "nothing but the bucket"
	}
	fmt.Printf("%s that costs money is left in %s with the tag Run=%s\n", what, s.Region, s.Name)
	return nil
}
