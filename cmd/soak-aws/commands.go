package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// subcommand is one that needs terraform and its settings.
func (d *deployment) subcommand(use, short string, run func(context.Context) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		if err := d.check(); err != nil {
			return err
		}
		return run(cmd.Context())
	}}
}

func (d *deployment) checkCommand() *cobra.Command {
	return d.subcommand("check", "Ask all that can be asked before something is made that costs money", d.inspect)
}

func (d *deployment) upCommand() *cobra.Command {
	var u up
	c := d.subcommand("up", "Make the stack and the runners, and wait until they are set up", func(ctx context.Context) error { return d.up(ctx, u) })
	c.Flags().StringVar(&u.stack, "stack", "bin/aws/stack", "folder with the files of the stack's host")
	c.Flags().StringVar(&u.runner, "runner", "bin/aws/runner", "folder with the files of the runners' hosts")
	c.Flags().IntVar(&u.connections, "connections", 0, "streams that the stack is to hold (0: as it is, or 1200)")
	c.Flags().Float64Var(&u.interval, "noop-interval", 0, "seconds between two noops of one stream (0: as it is, or 15)")
	return c
}

func (d *deployment) soakCommand() *cobra.Command {
	var program string
	c := &cobra.Command{
		Use: "soak -- [FLAG of `soak run`]...", Short: "Run a soak from the runners' hosts against the stack, and judge it",
		RunE: func(cmd *cobra.Command, args []string) error {
			if url, given := valueOf("--backend-url", args); given {
				return fmt.Errorf("soak-aws soaks the stack's backend, with its token, its ledger and its CPU, and --backend-url names another service: "+
					"`bin/soak run --on k8s --backend-url %s` soaks that (docs/distributed.md)", url)
			}
			if err := d.check(); err != nil {
				return err
			}
			return d.soak(cmd.Context(), program, args)
		},
	}
	c.Flags().StringVar(&program, "soak", "bin/soak", "the program soak")
	return c
}

// valueOf is the value of a flag among arguments for soak, the last one where it is given again.
func valueOf(flag string, args []string) (value string, given bool) {
	for i, arg := range args {
		if v, ok := strings.CutPrefix(arg, flag+"="); ok {
			value, given = v, true
		} else if arg == flag && i+1 < len(args) {
			value, given = args[i+1], true
		}
	}
	return value, given
}

func (d *deployment) attachCommand() *cobra.Command {
	var program string
	c := &cobra.Command{
		Use: "attach TESTID -- [FLAG of `soak attach`]...", Short: "Follow a soak that was cut off to its verdict", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := d.check(); err != nil {
				return err
			}
			return d.attach(cmd.Context(), program, args[0], args[1:])
		},
	}
	c.Flags().StringVar(&program, "soak", "bin/soak", "the program soak")
	return c
}

func (d *deployment) openCommand() *cobra.Command {
	var port int
	c := d.subcommand("open", "Open the way to Grafana and Prometheus by Systems Manager, until Ctrl-C", func(ctx context.Context) error {
		return d.open(ctx, port)
	})
	c.Flags().IntVar(&port, "port", openPort, "port of this machine; Grafana's own links name the default")
	return c
}

func (d *deployment) downCommand() *cobra.Command {
	var k keep
	c := d.subcommand("down", "Keep the evidence, destroy all, and look whether something that carries its tag is left", func(ctx context.Context) error {
		return d.down(ctx, 3*time.Minute, k)
	})
	c.Flags().StringVar(&k.program, "soak", "bin/soak", "the program soak, which makes archives")
	c.Flags().StringVar(&k.results, "results", "results", "folder of results")
	c.Flags().BoolVar(&k.without, "no-archive", false, "make no archive of the runs; archives in the bucket stay")
	c.Flags().BoolVar(&k.all, "all", false, "make no archive, and delete the bucket with the archives in it")
	return c
}

func (d *deployment) extendCommand() *cobra.Command {
	var minutes int
	c := d.subcommand("extend", "Move the end of all hosts, without making new ones", func(ctx context.Context) error {
		return d.extend(ctx, time.Duration(minutes)*time.Minute)
	})
	c.Flags().IntVar(&minutes, "minutes", 60, "how much later they end")
	return c
}

// sweepCommand needs no settings, where --region is given.
func (d *deployment) sweepCommand() *cobra.Command {
	var region string
	var endHosts, all bool
	c := &cobra.Command{
		Use: "sweep", Short: "Find by its tag what is there of one deployment (--name), or of all, also where the state is lost", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return d.sweep(cmd.Context(), region, endHosts, all) },
	}
	c.Flags().StringVar(&region, "region", os.Getenv("AWS_REGION"), "where to look; default: what the settings say")
	c.Flags().BoolVar(&endHosts, "end-hosts", false, "terminate the hosts that are found, after a question")
	c.Flags().BoolVar(&all, "all", false, "with --end-hosts: those of everybody in the region")
	return c
}
