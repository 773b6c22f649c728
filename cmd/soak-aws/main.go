// Command soak-aws drives infra/terraform: it makes the stack and the runners on AWS, waits until
// they are set up, soaks, and takes all down again and looks whether something is left. `make
// aws-up`, `aws-soak`, `aws-down` and their like call it.
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

	"github.com/spf13/cobra"
)

// exitError ends the command with the exit code of the program that it ran.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func main() {
	ctx, stop := untilSignal()
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// errHangup is the cause of a context that ended because the terminal was closed.
var errHangup = errors.New("the terminal was closed")

// untilSignal returns a context that ends at the first signal.
func untilSignal() (context.Context, func()) {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it; otherwise a closed terminal would leave a tunnel open
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, end := context.WithCancelCause(context.Background())
	received := make(chan os.Signal, 1)
	signal.Notify(received, signals...)
	go func() {
		if <-received == syscall.SIGHUP {
			end(errHangup)
		}
		end(nil)
	}()
	return ctx, func() { signal.Stop(received) }
}

func run(ctx context.Context, args []string) int {
	var d deployment
	root := &cobra.Command{
		Use:           "soak-aws",
		Short:         "Soak on AWS: make the stack and the runners, run, take all down",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.PersistentFlags().StringVar(&d.dir, "dir", "infra/terraform", "folder of the Terraform code")
	root.PersistentFlags().BoolVar(&d.yes, "yes", os.Getenv("AUTO_APPROVE") == "1", "do not ask before making or destroying [AUTO_APPROVE=1]")
	root.PersistentFlags().StringVar(&d.name, "name", "", "name of a further deployment with its own state (default: the name in the settings)")
	root.PersistentFlags().StringVar(&d.prices, "prices", os.Getenv("PRICES"), "table of prices in place of the built-in one, internal/sizing/prices.json [PRICES]")
	root.PersistentFlags().Float64Var(&d.maxUSD, "max-usd", 0, "maximum cost in US dollars until the hosts terminate themselves (0: no limit)")
	root.PersistentPreRun = func(*cobra.Command, []string) {
		if d.name != "" {
			d.set("name", d.name)
		}
	}
	root.AddCommand(d.checkCommand(), d.upCommand(), d.soakCommand(), d.attachCommand(), d.openCommand(), d.extendCommand(), d.sweepCommand(),
		d.subcommand("arch", "Print the architecture of the runners' hosts, which their image has to have", d.arch),
		d.downCommand(),
		d.subcommand("logs", "Show how far each host is, what its setup said if it failed, and how to get a shell", d.logs))
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var exit exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return int(exit)
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "soak-aws: stopped; resources that exist continue to cost money: `make aws-up` continues, `make aws-down` cleans up")
		return 2
	}
	fmt.Fprintln(os.Stderr, "soak-aws:", err)
	return 2
}
