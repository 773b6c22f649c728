package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// kubeconfig is kept beside the state while there is a cluster, so that a soak that was cut off can
// be attached to.
func (d *deployment) kubeconfig() string { return filepath.Join(d.dir, ".kubeconfig") }

// down destroys, and gives what is left some time to be gone: AWS's list of tags lags behind.
func (d *deployment) down(ctx context.Context, lag time.Duration) error {
	// Destroying needs a value for each variable, though none matters any more.
	d.set("repository_commit", strings.Repeat("0", 40))
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

// verifyGone asks AWS, not the state, whether anything that carries the tag is left.
func (c *cloud) verifyGone(ctx context.Context, name, region string, lag, every time.Duration) error {
	var left []string
	err := poll(ctx, every, lag, func() (gone bool, err error) {
		left, err = c.left(ctx, name)
		return len(left) == 0, err
	})
	switch {
	case errors.Is(err, errTooLong):
		return fmt.Errorf("%d things in %s still carry the tag Run=%s:\n  %s\n  continue:  make aws-down, or delete them in the AWS console",
			len(left), region, name, strings.Join(left, "\n  "))
	case err != nil:
		return fmt.Errorf("all is destroyed as far as terraform knows, but that could not be verified: %w", err)
	}
	fmt.Printf("nothing is left in %s that carries the tag Run=%s\n", region, name)
	return nil
}
