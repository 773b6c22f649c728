package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// kubeconfig is kept beside the state while there is a cluster, so that a soak that was cut off can
// be attached to.
func (d *deployment) kubeconfig() string {
	if d.name != "" {
		return filepath.Join(d.dir, ".kubeconfig-"+d.name)
	}
	return filepath.Join(d.dir, ".kubeconfig")
}

// down destroys, and gives what is left some time to be gone: AWS's list of tags lags behind.
func (d *deployment) down(ctx context.Context, lag time.Duration) error {
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
	if err := d.talk(ctx, "destroy"); err != nil {
		return fmt.Errorf("%w; what is left goes on costing money.\n  continue:  make aws-down", err)
	}
	if err := os.Remove(d.kubeconfig()); err != nil && !os.IsNotExist(err) {
		return err
	}
	return aws.verifyGone(ctx, s.Name, s.Region, lag, 5*time.Second)
}
