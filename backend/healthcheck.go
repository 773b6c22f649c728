package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// Time a service has to say that it is ready.
const healthTimeout = 3 * time.Second

// checkHealth asks the service that listens where this configuration says whether it is ready. It
// is the health check of a container whose image holds nothing but this program. The certificate
// is not verified: the service is asked at its own address, not by the name it is for.
func checkHealth(cfg *Config) error {
	network, address := "tcp", cfg.Listen
	if path, ok := strings.CutPrefix(cfg.Listen, "unix:"); ok {
		network, address = "unix", path
	}
	client := &http.Client{Timeout: healthTimeout, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, address)
		},
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see above
	}}
	scheme := "http"
	if cfg.TLSCert != "" {
		scheme = "https"
	}
	resp, err := client.Get(scheme + "://backend/readyz")
	if err != nil {
		return fmt.Errorf("no service answers on %s: %w", cfg.Listen, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New("the service is not ready: " + resp.Status)
	}
	return nil
}
