package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func downCommand(d *deployment) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Destroy all of it, and look whether something that carries its tag is left",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := d.check(); err != nil {
				return err
			}
			return d.down(cmd.Context(), 3*time.Minute)
		},
	}
}

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
	for begun := time.Now(); ; {
		arns, err := c.left(ctx, name)
		if err != nil {
			return fmt.Errorf("all is destroyed as far as terraform knows, but that could not be verified: %w", err)
		}
		if len(arns) == 0 {
			fmt.Printf("nothing is left in %s that carries the tag Run=%s\n", region, name)
			return nil
		}
		if time.Since(begun) > lag {
			return fmt.Errorf("%d things in %s still carry the tag Run=%s:\n  %s\n  continue:  make aws-down, or delete them in the AWS console",
				len(arns), region, name, strings.Join(arns, "\n  "))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(every):
		}
	}
}
