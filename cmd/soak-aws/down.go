package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// kubeconfig returns the path of the kubeconfig, next to the state. It stays while there is a cluster, for `attach`.
func (d *deployment) kubeconfig() string {
	if d.name != "" {
		return filepath.Join(d.dir, ".kubeconfig-"+d.name)
	}
	return filepath.Join(d.dir, ".kubeconfig")
}

// down destroys, and gives what is left some time to be gone: AWS's list of tags lags behind.
func (d *deployment) down(ctx context.Context, lag time.Duration, k keep) error {
	// Destroying needs a value for each variable, though none matters any more.
	d.env = append(d.env, anyFiles...)
	if err := d.init(ctx); err != nil {
		return err
	}
	s, err := d.settings(ctx)
	if err != nil {
		return err
	}
	aws, err := connect(ctx, s.Region)
	if err != nil {
		return err
	}
	bucket, archives, err := d.keepEvidence(ctx, aws, k)
	if err != nil {
		return err
	}
	if err := d.destroy(ctx, len(archives) > 0); err != nil {
		return fmt.Errorf("%w; the rest continues to cost money.\n  continue:  make aws-down", err)
	}
	if err := os.Remove(d.kubeconfig()); err != nil && !os.IsNotExist(err) {
		return err
	}
	if len(archives) == 0 {
		bucket = ""
	}
	if err := aws.verifyGone(ctx, s.Name, s.Region, bucket, lag, 5*time.Second); err != nil {
		return err
	}
	if bucket != "" {
		printKept(s, bucket, archives)
	}
	return nil
}

// destroy takes all down, but for the bucket where it is kept.
func (d *deployment) destroy(ctx context.Context, keepBucket bool) error {
	if !keepBucket {
		return d.change(ctx, "destroy")
	}
	targets, err := d.allButTheBucket(ctx)
	if err != nil || len(targets) == 0 {
		return err
	}
	return d.change(ctx, "destroy", targets...)
}
