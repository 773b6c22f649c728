package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"github.com/sse-soak/sse-soak/test/h2service"
)

// http2Options are the options of a service of noops over HTTP/2 and HTTP/1.1.
type http2Options struct {
	Listen   string  // address
	Certs    string  // folder as `make certs` makes it, for TLS
	Interval float64 // seconds between two noops of a stream
	Slots    int     // moments of an interval at which noops are sent; 1: all streams at once
	Streams  uint32  // that a connection may carry
}

// serveHTTP2 serves noops until ctx ends.
func serveHTTP2(ctx context.Context, o http2Options) (struct{}, error) {
	c := h2service.Config{
		Interval: time.Duration(cmp.Or(o.Interval, 15) * float64(time.Second)), Slots: cmp.Or(o.Slots, 150), StreamsPerConnection: cmp.Or(o.Streams, 250),
	}
	if o.Certs != "" {
		pair, err := tls.LoadX509KeyPair(filepath.Join(o.Certs, "server/server.pem"), filepath.Join(o.Certs, "server/server-key.pem"))
		if err != nil {
			return struct{}{}, fmt.Errorf("read the certificate: %w; run `make certs`", err)
		}
		c.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cmp.Or(o.Listen, "127.0.0.1:8090"))
	if err != nil {
		return struct{}{}, err
	}
	return struct{}{}, h2service.New(c).Serve(ctx, listener)
}
