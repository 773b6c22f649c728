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

const healthTimeout = 3 * time.Second

var errCertificateRequested = errors.New("the service requests a client certificate")

// checkHealth is the health check of the container, whose image has no other program. It does not verify the service's
// certificate, which need not be valid for the host name "backend". It has no client certificate, so it succeeds if the
// service requests one.
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
		TLSClientConfig: &tls.Config{
			InsecureSkipVerify:   true, // #nosec G402 -- see above
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return nil, errCertificateRequested },
		},
	}}
	scheme := "http"
	if cfg.TLSCert != "" {
		scheme = "https"
	}
	resp, err := client.Get(scheme + "://backend/readyz")
	if errors.Is(err, errCertificateRequested) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("check the health of %s: %w", cfg.Listen, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New("the service is not ready: " + resp.Status)
	}
	return nil
}
