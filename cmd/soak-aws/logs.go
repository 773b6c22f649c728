package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
)

// logs prints the state of each host, and how to get a shell on it.
func (d *deployment) logs(ctx context.Context) error {
	out, c, err := d.connected(ctx)
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(out.Statuses))
	values, err := c.parameters(ctx, names...)
	if err != nil {
		return err
	}
	for _, name := range names {
		fmt.Printf("%s: %s\n", name, values[name])
	}
	fmt.Println("\nA shell on each, by the AWS command line and its Session Manager plugin; the setup's log there is /var/log/cloud-init-output.log:")
	for _, name := range slices.Sorted(maps.Keys(out.Instances)) {
		fmt.Printf("  %-10s aws ssm start-session --region %s --target %s\n", name, out.Region, out.Instances[name])
	}
	return nil
}
