package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/sse-soak/sse-soak/test/h2service"
)

// http2Command serves test/h2service until it is ended.
func http2Command(ctx context.Context) *cobra.Command {
	var c h2service.Config
	var listen, certs string
	cmd := &cobra.Command{
		Use: "http2-service", Short: "Serve noops over HTTP/2 and HTTP/1.1, to 200,000 streams and more",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if c.Interval <= 0 || c.Slots < 1 || c.StreamsPerConnection < 1 {
				return usage("--interval, --slots and --streams have to be over 0")
			}
			if certs != "" {
				pair, err := tls.LoadX509KeyPair(filepath.Join(certs, "server/server.pem"), filepath.Join(certs, "server/server-key.pem"))
				if err != nil {
					return fmt.Errorf("read the certificate: %w; `make certs` makes one", err)
				}
				c.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12}
			}
			listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", listen)
			if err != nil {
				return err
			}
			return h2service.New(c).Serve(ctx, listener)
		},
	}
	f := cmd.Flags()
	f.StringVar(&listen, "listen", "127.0.0.1:8090", "address")
	f.DurationVar(&c.Interval, "interval", 15*time.Second, "time between two noops of a stream")
	f.IntVar(&c.Slots, "slots", 150, "moments of an interval at which noops are sent; 1: all streams have theirs in the same instant")
	f.Uint32Var(&c.StreamsPerConnection, "streams", 250, "streams that a connection may carry")
	f.StringVar(&certs, "certs", "", "folder as `make certs` makes it; with it the service speaks TLS")
	return cmd
}
