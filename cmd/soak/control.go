package main

import (
	"context"
	"fmt"
	"net"
	"os"

	"github.com/spf13/cobra"

	"github.com/sse-soak/sse-soak/internal/control"
	"github.com/sse-soak/sse-soak/internal/run"
)

func controlCommand() *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use:   run.ControlCommand,
		Short: "Run a reference server for runners on other machines: one event per second on each stream",
		Long: "The control group is a group of streams to a reference server. It shows delays of the load\n" +
			"generator. control runs a reference server for runners on other machines and for k6 without soak.\n" +
			"Pass the URL of the server to them as CONTROL_URL (docs/distributed.md). `soak run` starts a\n" +
			"reference server for its own runners.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := run.UntilSignal(cmd.Context())
			defer stop()
			listener, err := controlListener(ctx, listen)
			if err != nil {
				return err
			}
			return control.Serve(ctx, listener)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "", "address to listen on (default: the socket at file descriptor 3)")
	return cmd
}

// controlListener listens on an address. "" means the listening socket that `soak run` passes at descriptor 3.
func controlListener(ctx context.Context, address string) (net.Listener, error) {
	if address != "" {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err != nil {
			return nil, usageError{Err: fmt.Errorf("--listen: %w; name a free HOST:PORT or :PORT of this machine", err)}
		}
		return listener, nil
	}
	file := os.NewFile(3, "listener")
	defer file.Close()
	listener, err := net.FileListener(file)
	if err != nil {
		return nil, fmt.Errorf("descriptor 3 is not a listening socket: %w; pass an address with --listen", err)
	}
	return listener, nil
}
