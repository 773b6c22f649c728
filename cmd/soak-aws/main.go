// Command soak-aws creates the stack and the runners of infra/terraform on AWS, runs soak, and destroys all resources
// except the archives. It finds credentials as every AWS tool does: in the environment, a profile, single sign-on or a
// role.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// An exitError is the exit code of the soak process. soak-aws exits with the same code.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// hangup receives SIGHUP when the terminal closes. Only `open` reads from hangup. The other commands continue, because
// terraform must finish, and soak receives its own SIGHUP.
var hangup = make(chan os.Signal, 1)

func main() { os.Exit(run(os.Args[1:])) }

// warn prints a line on standard error; tests replace it.
var warn = func(text string) { fmt.Fprintln(os.Stderr, text) }

func run(args []string) int {
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores SIGHUP
		signal.Notify(hangup, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	d := new(deployment)
	root := d.commands()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var exit exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return int(exit)
	case ctx.Err() != nil:
		err = errors.New("stopped, but resources that exist still cost money; run `" + d.makeCommand("aws-up") +
			"` to complete the deployment, or `" + d.makeCommand("aws-down") + "` to remove it")
	}
	fmt.Fprintln(os.Stderr, "soak-aws:", err)
	return 2
}

func (d *deployment) commands() *cobra.Command {
	root := &cobra.Command{
		Use: "soak-aws", Short: "Soak on AWS: create the stack and the runners, run soaks, and destroy all but the archives",
		SilenceErrors: true, SilenceUsage: true,
	}
	flags := root.PersistentFlags()
	flags.StringVar(&d.dir, "dir", "infra/terraform", "folder of the Terraform code")
	flags.BoolVar(&d.skipConfirm, "yes", os.Getenv("AUTO_APPROVE") == "1", "create and destroy without confirmation [AUTO_APPROVE=1]")
	flags.StringVar(&d.name, "name", "", "name of the deployment, which selects its state (default: name in the settings)")
	flags.StringVar(&d.program, "soak", "bin/soak", "path of the soak program")
	flags.StringVar(&d.prices, "prices", os.Getenv("PRICES"),
		"file with prices, in place of internal/host/sizing/prices.json [PRICES]")
	flags.Float64Var(&d.maxUSD, "max-usd", 0, "maximum cost in US dollars until the hosts terminate themselves (0: no limit)")
	add := func(use, short string, args cobra.PositionalArgs, run func(context.Context, []string) error) *cobra.Command {
		c := &cobra.Command{Use: use, Short: short, Args: args, RunE: func(cmd *cobra.Command, args []string) error {
			return run(cmd.Context(), args)
		}}
		root.AddCommand(c)
		return c
	}
	addPlain := func(use, short string, run func(context.Context) error) *cobra.Command {
		return add(use, short, cobra.NoArgs, func(ctx context.Context, _ []string) error { return run(ctx) })
	}

	addPlain("check", "Check settings, programs and permissions before anything costs money", d.inspect)
	addPlain("arch", "Print the architecture of the runners' hosts; the runners' image must match it", func(ctx context.Context) error {
		s, err := d.readSettings(ctx)
		if err == nil {
			fmt.Println(s.RunnerArchitecture)
		}
		return err
	})
	add("soak [flags] -- [FLAG of `soak run`]...", "Run a soak from the runners' hosts against the stack, and judge it", cobra.ArbitraryArgs, d.soak)
	add("attach [flags] TESTID -- [FLAG of `soak attach`]...", "Follow an interrupted soak to its verdict", cobra.MinimumNArgs(1), d.attach)

	var requested streams
	c := addPlain("up", "Create the stack and the runners, and wait until they are ready", func(ctx context.Context) error { return d.up(ctx, requested) })
	c.Flags().IntVar(&requested.Connections, "connections", 0, "streams that the stack must support (0: unchanged; 1200 for a new stack)")
	c.Flags().Float64Var(&requested.Interval, "noop-interval", 0, "seconds between two noops of one stream (0: unchanged; 15 for a new stack)")

	var port int
	c = addPlain("open", "Open a tunnel to Grafana and Prometheus until Ctrl-C", func(ctx context.Context) error { return d.open(ctx, port) })
	c.Flags().IntVar(&port, "port", openPort, "local port; Grafana's links work only with the default")

	var minutes int
	c = addPlain("extend", "Postpone the termination of all hosts", func(ctx context.Context) error { return d.extend(ctx, minutes) })
	c.Flags().IntVar(&minutes, "minutes", 60, "minutes by which the end is postponed")

	options := downOptions{lag: 3 * time.Minute}
	c = addPlain("down", "Archive the runs, destroy all but the archives, and check that no other host, disk or bucket of the deployment remains",
		func(ctx context.Context) error { return d.down(ctx, options) })
	c.Flags().StringVar(&options.results, "results", "results", "folder of results")
	c.Flags().BoolVar(&options.withoutArchive, "no-archive", false, "do not archive the runs, but keep existing archives in the bucket")
	c.Flags().BoolVar(&options.withBucket, "all", false, "do not archive the runs, and delete the bucket with its archives")

	var region string
	var endHosts bool
	c = addPlain("sweep", "Find resources by their tag, even if the state is lost",
		func(ctx context.Context) error { return d.sweep(ctx, region, endHosts) })
	c.Flags().StringVar(&region, "region", os.Getenv("AWS_REGION"), "region (default: the region in the settings) [AWS_REGION]")
	c.Flags().BoolVar(&endHosts, "end-hosts", false, "terminate the hosts of --name, after a confirmation")
	return root
}
