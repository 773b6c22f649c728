// Command soak-aws drives infra/terraform: it makes the stack and the runners on AWS, waits until
// they are set up, soaks, and takes all down again and looks whether something is left. `make
// aws-up`, `aws-soak`, `aws-extend`, `aws-down` and `aws-logs` call it.
//
// It finds credentials as every AWS tool does: environment, profile, single sign-on, role.
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

// exitError ends the command with the exit code of the program that it ran.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string) int {
	var d deployment
	var u up
	root := &cobra.Command{
		Use:           "soak-aws",
		Short:         "Soak on AWS: make the stack and the runners, run, take all down",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.PersistentFlags().StringVar(&d.dir, "dir", "infra/terraform", "folder of the Terraform code")
	root.PersistentFlags().BoolVar(&d.yes, "yes", os.Getenv("AUTO_APPROVE") == "1", "do not ask before making or destroying [AUTO_APPROVE=1]")
	root.PersistentFlags().StringVar(&d.name, "name", "", "name of a deployment beside others, with a state of its own; default: the one that the settings name")
	root.PersistentPreRun = func(*cobra.Command, []string) {
		if d.name != "" {
			d.set("name", d.name)
		}
	}
	command := func(use, short string, run func(context.Context) error) *cobra.Command {
		return &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			if err := d.check(); err != nil {
				return err
			}
			return run(cmd.Context())
		}}
	}
	upCommand := command("up", "Make the stack and the runners, and wait until they are set up", func(ctx context.Context) error { return d.up(ctx, u) })
	upCommand.Flags().StringVar(&u.archive, "stack", "bin/stack.tar.gz", "what the stack's host is made from, as `pack` leaves it")
	upCommand.Flags().StringVar(&u.image, "image", "bin/runner-image.tar.gz", "the runners' image, made by docker save and gzip")
	upCommand.Flags().IntVar(&u.connections, "connections", 1200, "streams that the stack is to hold")
	upCommand.Flags().Float64Var(&u.interval, "noop-interval", 15, "seconds between two noops of one stream")
	var soak string
	soakCommand := &cobra.Command{
		Use: "soak -- [FLAG of `soak run`]...", Short: "Run a soak from the runners' hosts against the stack, and judge it",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := d.check(); err != nil {
				return err
			}
			return d.soak(cmd.Context(), soak, args)
		},
	}
	soakCommand.Flags().StringVar(&soak, "soak", "bin/soak", "the program soak")
	var compose, built string
	checkCommand := command("check", "Ask all that can be asked before something is made that costs money", func(ctx context.Context) error {
		return d.inspect(ctx, compose, built)
	})
	checkCommand.Flags().StringVar(&compose, "compose", "compose.yaml", "file with the images of the stack")
	checkCommand.Flags().StringVar(&built, "image", "bin/runner-image.tar.gz", "the runners' image, if it is built already")
	var minutes int
	extendCommand := command("extend", "Move the end of all hosts, without making new ones", func(ctx context.Context) error {
		return d.extend(ctx, time.Duration(minutes)*time.Minute)
	})
	extendCommand.Flags().IntVar(&minutes, "minutes", 60, "how much later they end")
	var repository, images, archive string
	packCommand := &cobra.Command{
		Use: "pack", Short: "Pack what the stack's host needs: files of the repository, and images", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return pack(repository, images, archive) },
	}
	packCommand.Flags().StringVar(&repository, "repository", ".", "folder of the repository")
	packCommand.Flags().StringVar(&images, "images", "bin/stack-images.tar.gz", "the stack's own images, made by docker save")
	packCommand.Flags().StringVar(&archive, "out", "bin/stack.tar.gz", "archive to write")
	var region string
	var endHosts bool
	sweepCommand := &cobra.Command{
		Use: "sweep", Short: "Find by its tag what is there of one deployment (--name), or of all, also where the state is lost", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return d.sweep(cmd.Context(), region, endHosts) },
	}
	sweepCommand.Flags().StringVar(&region, "region", os.Getenv("AWS_REGION"), "where to look; default: what the settings say")
	sweepCommand.Flags().BoolVar(&endHosts, "end-hosts", false, "terminate the hosts that are found")
	root.AddCommand(upCommand, sweepCommand, soakCommand, extendCommand, packCommand,
		checkCommand,
		command("arch", "Print the architecture of the runners' hosts, which their image has to have", d.arch),
		command("down", "Destroy all of it, and look whether something that carries its tag is left", func(ctx context.Context) error {
			return d.down(ctx, 3*time.Minute)
		}),
		command("logs", "Show how far each host is, what its setup said if it failed, and how to get a shell", d.logs))
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var exit exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return int(exit)
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "soak-aws: stopped. What was made so far goes on costing money: `make aws-up` continues, `make aws-down` cleans up.")
		return 2
	}
	fmt.Fprintln(os.Stderr, "soak-aws:", err)
	return 2
}
