package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// http2Options has the options of a noop service over HTTP/2 and HTTP/1.1.
type http2Options struct {
	Listen   string  // address to listen on; "": 127.0.0.1:8090
	Certs    string  // folder of `make certs` for TLS; "": no TLS
	Interval float64 // seconds between two noops of a stream; 0: 15
	Phase    string  // phase of noops: random, or wall for the same time on all streams; "": random
	Streams  int     // maximum number of streams per connection; 0: 250
}

func serveHTTP2(ctx context.Context, o http2Options) (struct{}, error) {
	interval := time.Duration(cmp.Or(o.Interval, 15) * float64(time.Second))
	spec := fakeservice.NewSpec(interval, cmp.Or(o.Phase, fakeservice.PhaseRandom), cmp.Or(o.Streams, 250))
	if o.Certs != "" {
		pair, err := tls.LoadX509KeyPair(filepath.Join(o.Certs, "server/server.pem"), filepath.Join(o.Certs, "server/server-key.pem"))
		if err != nil {
			return struct{}{}, fmt.Errorf("read the certificate: %w; run `make certs`", err)
		}
		spec.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cmp.Or(o.Listen, "127.0.0.1:8090"))
	if err != nil {
		return struct{}{}, err
	}
	service := fakeservice.StartService(spec, fakeservice.Strike{}, listener)
	<-ctx.Done()
	service.Stop()
	return struct{}{}, nil
}
