package handshake

import (
	"crypto/tls"
	"fmt"
	"net/url"
	"time"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/js/common"

	"github.com/sse-soak/sse-soak/internal/proxy"
	"github.com/sse-soak/sse-soak/k6/network"
)

type request struct {
	url     *url.URL
	address string        // HOST:PORT, in ASCII
	hold    bool          // keep the connection open after the first response
	timeout time.Duration // for the dial and the first response together, and again for each further request
	tags    map[string]string

	certificate   *tls.Certificate // nil: the certificates of k6's option tlsAuth
	noCertificate bool             // present no certificate
}

const defaultTimeout = 10 * time.Second

func (m *module) parse(rawURL string, params sobek.Value) (*request, error) {
	r := &request{timeout: defaultTimeout}
	u, err := url.Parse(rawURL)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" {
		return nil, fmt.Errorf("connect: url must start with https:// and name a host, got %q", rawURL)
	}
	var direct *proxy.Proxy
	r.url, r.address = u, direct.Address(u)
	if common.IsNullish(params) {
		return r, nil
	}
	rt := m.vu.Runtime()
	object := params.ToObject(rt)
	for _, key := range object.Keys() {
		value := object.Get(key)
		if sobek.IsUndefined(value) { // as if it were absent
			continue
		}
		switch key {
		case "hold":
			r.hold = value.ToBoolean()
		case "timeout":
			if r.timeout, err = network.Timeout(value); err != nil {
				return nil, fmt.Errorf("connect: timeout %w", err)
			}
		case "tags":
			if err := rt.ExportTo(value, &r.tags); err != nil {
				return nil, fmt.Errorf("connect: tags must be an object of strings: %w", err)
			}
		case "certificate":
			if err := m.parseCertificate(r, value); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("connect: unknown parameter %q; use hold, timeout, tags or certificate", key)
		}
	}
	return r, nil
}

// parseCertificate sets the client certificate of a request from the parameter; null means no certificate. All virtual
// users share a parsed certificate and its key.
func (m *module) parseCertificate(r *request, value sobek.Value) error {
	if sobek.IsNull(value) {
		r.noCertificate = true
		return nil
	}
	var pem struct {
		Cert string `js:"cert"`
		Key  string `js:"key"`
	}
	if err := m.vu.Runtime().ExportTo(value, &pem); err != nil {
		return fmt.Errorf("connect: certificate must be {cert, key} in PEM, or null for none: %w", err)
	}
	key := pem.Cert + "\x00" + pem.Key
	if pair, ok := m.root.certificates.Load(key); ok {
		r.certificate = pair.(*tls.Certificate)
		return nil
	}
	pair, err := tls.X509KeyPair([]byte(pem.Cert), []byte(pem.Key))
	if err != nil {
		return fmt.Errorf("connect: certificate must contain a certificate and its key in PEM: %w", err)
	}
	m.root.certificates.Store(key, &pair)
	r.certificate = &pair
	return nil
}
