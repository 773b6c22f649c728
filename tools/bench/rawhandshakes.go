package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/sse-soak/sse-soak/internal/http1"
)

// rawHandshakes are the argument of the bare loop, as JSON.
type rawHandshakes struct {
	Address              string // host:port of the service
	Certs                string // folder as `make certs` makes it
	Connections, Workers int
}

// rawHandshakesCommand is the yardstick of k6/x/handshake. It prints the seconds that it took.
func rawHandshakesCommand(ctx context.Context) *cobra.Command {
	return &cobra.Command{
		Use: "raw-handshakes", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var o rawHandshakes
			if err := json.Unmarshal([]byte(args[0]), &o); err != nil {
				return err
			}
			conf, err := o.config()
			if err != nil {
				return err
			}
			began := time.Now()
			if err := o.run(ctx, conf); err != nil {
				return err
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(time.Since(began).Seconds())
		},
	}
}

func (o rawHandshakes) config() (*tls.Config, error) {
	ca, err := os.ReadFile(filepath.Join(o.Certs, "ca.pem"))
	if err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(o.Certs, "clients", "client-1.pem"), filepath.Join(o.Certs, "clients", "client-1-key.pem"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, errors.New("the authority is no certificate")
	}
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, ServerName: "localhost", MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true}, nil
}

// run shares the connections out among the workers, each of which connects from an address of its own, as k6's virtual users do.
func (o rawHandshakes) run(ctx context.Context, conf *tls.Config) error {
	var made atomic.Int64
	workers, ctx := errgroup.WithContext(ctx)
	for n := range o.Workers {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+n%32))}}
		workers.Go(func() error {
			for made.Add(1) <= int64(o.Connections) {
				if err := o.once(ctx, dialer, conf); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return workers.Wait()
}

func (o rawHandshakes) once(ctx context.Context, dialer net.Dialer, conf *tls.Config) error {
	raw, err := dialer.DialContext(ctx, "tcp", o.Address)
	if err != nil {
		return err
	}
	conn := tls.Client(raw, conf)
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); err != nil {
		return err
	}
	resp, err := http1.NewConn(conn, raw, http1.MaxHead).Head(nil)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the service answered %s", resp.Status)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}
