package target

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// Certificates is the path of a folder that `make certs` created. It has the certificates of a certificate authority, a
// server and several clients. "" means no TLS.
type Certificates string

// secureName is the host name in the server's certificate. Clients verify it, whatever address they connect to.
const secureName = "localhost"

func (c Certificates) path(elements ...string) string {
	return filepath.Join(append([]string{string(c)}, elements...)...)
}

// Check returns an error if a file is missing. The error names the first one.
func (c Certificates) Check() error {
	for _, file := range []string{"ca.pem", "server/server.pem", "clients/client-1.pem", "clients/stranger.pem", "clients/impostor.pem"} {
		if _, err := os.Stat(c.path(file)); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s is missing; create the certificates with `make certs`, and set CERTS to their folder", c.path(file))
		}
	}
	return nil
}

func (c Certificates) backendEnv() []string {
	return []string{
		"TLS_CERT=" + c.path("server", "server.pem"), "TLS_KEY=" + c.path("server", "server-key.pem"), "TLS_CLIENT_CA=" + c.path("ca.pem"),
	}
}

// Client returns the TLS configuration of a client with a client certificate from the folder.
func (c Certificates) Client() (*tls.Config, error) {
	pem, err := os.ReadFile(c.path("ca.pem"))
	if err != nil {
		return nil, fmt.Errorf("read the CA certificate: %w", err)
	}
	pair, err := tls.LoadX509KeyPair(c.path("clients", "client-1.pem"), c.path("clients", "client-1-key.pem"))
	if err != nil {
		return nil, fmt.Errorf("read the certificate of client 1: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate", c.path("ca.pem"))
	}
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

// directClient returns a client that connects to the backend at an address, whatever the URL. It uses TLS even for an
// http:// URL, so that callers can use the same URLs for all backends.
func (c Certificates) directClient(address string) (*http.Client, error) {
	conf, err := c.Client()
	if err != nil {
		return nil, err
	}
	conf.ServerName = secureName
	return clientOf("tcp", address, (&tls.Dialer{Config: conf}).DialContext), nil
}

// localAddresses is a range of addresses, each with its own ephemeral ports. A closed connection keeps its port for a
// minute. The ports of these addresses are enough for 900,000 connections in that time.
const localAddresses = "127.0.0.2-127.0.0.33"

const sourceCount = 32

// Sources returns the number of addresses from which a runner connects to a local target. k6 assigns one to each
// virtual user.
func Sources(vus int) int { return min(max(vus, 1), sourceCount) }

// RunnerEnv returns the variables that a runner needs to connect to the target with these certificates.
func (t *Target) RunnerEnv(c Certificates) map[string]string {
	env := map[string]string{"CERTS": string(c), "SSL_CERT_FILE": c.path("ca.pem")}
	if t.Local != nil {
		env["CONNECT_TO"], _, _ = strings.Cut(t.Local.address, ":")
		env["K6_LOCAL_IPS"] = localAddresses
	}
	return env
}
