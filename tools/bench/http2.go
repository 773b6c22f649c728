package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/process"
	"github.com/sse-soak/sse-soak/internal/target"
	"github.com/sse-soak/sse-soak/test/h2service"
)

// The limits of issue 18.
const (
	limitHTTP2KB    = 2
	limitHTTP2TLSKB = 2
	limitHTTP2Ratio = 1
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

// startHTTP2 starts it as a process, a noop a second to all streams at once, as our backend does.
func (b *bench) startHTTP2(certs target.Certificates) (s service, stop func()) {
	dir, listener := b.folder("http2-service"), must(net.Listen("tcp", "127.0.0.1:0"))
	address := listener.Addr().String()
	check(listener.Close())
	p := must(process.Start(process.Spec{
		Name: "http2 service", Path: must(os.Executable()), Env: os.Environ(), Log: filepath.Join(dir, "log"), Orphan: syscall.SIGKILL,
		Args: []string{"http2-service", "--listen", address, "--interval", "1s", "--slots", "1", "--certs", string(certs)},
	}))
	url, env := "http://"+address, map[string]string(nil)
	if certs != "" {
		_, port, _ := net.SplitHostPort(address)
		url = "https://localhost:" + port
	}
	t := must(target.Remotes([]string{url}, "", certs))[0]
	if certs != "" {
		env = t.RunnerEnv(certs)
		env["CONNECT_TO"] = "127.0.0.1"
	}
	check(t.Ready(b.ctx))
	return service{t, b, env}, func() { p.Stop(b.ctx, syscall.SIGTERM, 10*time.Second) }
}

// measureHTTP2 compares what the soak script takes over HTTP/2 with what it takes over HTTP/1.1, from the same service.
func (b *bench) measureHTTP2() (out []Metric) {
	certs := target.Certificates(filepath.Join(b.dir, "certs-http2"))
	check(exec.CommandContext(b.ctx, "infra/compose/certs", string(certs)).Run())
	open, stopOpen := b.startHTTP2("")
	defer stopOpen()
	secure, stopSecure := b.startHTTP2(certs)
	defer stopSecure()
	http1 := func(p *plan.Plan) { p.HTTPVersion = "1.1" }
	http2 := func(p *plan.Plan) { p.HTTPVersion = plan.HTTP2 }
	all := []*contender{
		open.soakScript("HTTP/2", soakScript, http2), open.soakScript("HTTP/1.1", soakScript, http1),
		secure.soakScript("HTTP/2 over TLS", tlsScript, http2), secure.soakScript("HTTP/1.1 over TLS", tlsScript, http1),
	}
	all[0].limitKB, all[2].limitKB = limitHTTP2KB, limitHTTP2TLSKB
	b.inTurns(b.full, all...)
	for _, c := range all {
		out = append(out, c.perConnection(b.full))
	}
	for _, c := range all {
		out = append(out, c.perThousand(b.full, "noops"))
	}
	return append(out, all[0].against(all[1]).limited(limitHTTP2Ratio), all[2].against(all[3]).limited(limitHTTP2Ratio))
}
