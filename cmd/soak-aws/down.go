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
func (d *deployment) kubeconfig() string { return filepath.Join(d.dir, ".kubeconfig") }

// down destroys, and gives what is left some time to be gone: AWS's list of tags lags behind.
func (d *deployment) down(ctx context.Context, lag time.Duration) error {
	// Destroying needs a value for each variable, though none matters any more.
	d.set("stack_archive_file", "versions.tf")
	d.set("runner_image_file", "versions.tf")
	if err := d.talk(ctx, "init", "-input=false"); err != nil {
		return err
	}
	name, region := d.variable(ctx, "name"), d.variable(ctx, "region")
	if name == "" || region == "" {
		return fmt.Errorf("the settings in %s are not valid: `terraform -chdir=%s plan` says why", d.dir, d.dir)
	}
	aws, err := connect(ctx, region)
	if err != nil {
		return err
	}
	if err := d.talk(ctx, "destroy"); err != nil {
		return fmt.Errorf("%w; what is left goes on costing money.\n  continue:  make aws-down", err)
	}
	if err := os.Remove(d.kubeconfig()); err != nil && !os.IsNotExist(err) {
		return err
	}
	return aws.verifyGone(ctx, name, region, lag, 5*time.Second)
}
