package handshake

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/js/common"
	"go.k6.io/k6/v2/lib/types"
)

// A request holds the validated parameters of connect.
type request struct {
	url         *url.URL
	address     string // HOST:PORT
	hold        bool
	timeout     time.Duration
	tags        map[string]string
	certificate *tls.Certificate // nil: what k6's option tlsAuth says
	bare        bool             // show no certificate at all
}

const defaultTimeout = 10 * time.Second

// parse reads the arguments of connect. An error is one sentence.
func (m *module) parse(rawURL string, params sobek.Value) (*request, error) {
	r := &request{timeout: defaultTimeout}
	u, err := url.Parse(rawURL)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" {
		return nil, fmt.Errorf("connect: %q is no URL of a TLS server: it must begin with https:// and name a host", rawURL)
	}
	r.url, r.address = u, u.Host
	if u.Port() == "" {
		r.address = net.JoinHostPort(u.Hostname(), "443")
	}
	if common.IsNullish(params) {
		return r, nil
	}
	rt := m.vu.Runtime()
	object := params.ToObject(rt)
	for _, key := range object.Keys() {
		value := object.Get(key)
		switch key {
		case "hold":
			r.hold = value.ToBoolean()
		case "timeout":
			d, err := types.GetDurationValue(value.Export())
			if err != nil || d <= 0 {
				return nil, fmt.Errorf("connect: timeout is %v: it must be a number of milliseconds or a text such as \"10s\", over 0", value)
			}
			r.timeout = d
		case "tags":
			if err := rt.ExportTo(value, &r.tags); err != nil {
				return nil, fmt.Errorf("connect: tags must be an object of texts: %w", err)
			}
		case "certificate":
			if err := m.parseCertificate(r, value); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("connect: there is no parameter %q; there are hold, timeout, tags and certificate", key)
		}
	}
	return r, nil
}

func (m *module) parseCertificate(r *request, value sobek.Value) error {
	if common.IsNullish(value) {
		r.bare = true
		return nil
	}
	var text struct {
		Cert string `js:"cert"`
		Key  string `js:"key"`
	}
	if err := m.vu.Runtime().ExportTo(value, &text); err != nil {
		return fmt.Errorf("connect: certificate must be {cert, key} in PEM, or null for none: %w", err)
	}
	known := text.Cert + "\x00" + text.Key
	if pair, ok := m.root.pairs.Load(known); ok {
		r.certificate = pair.(*tls.Certificate)
		return nil
	}
	pair, err := tls.X509KeyPair([]byte(text.Cert), []byte(text.Key))
	if err != nil {
		return fmt.Errorf("connect: certificate holds no pair of certificate and key in PEM: %w", err)
	}
	m.root.pairs.Store(known, &pair)
	r.certificate = &pair
	return nil
}
