// Package target manages the service under test: a remote service, or backends that the package starts on this machine,
// usually behind nginx.
package target

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/proxy"
)

// A Target is a service under test, which may have its own ledger.
type Target struct {
	URL   string
	Token string
	Local *Local // nil: soak did not start it

	client *http.Client // for the requests of soak
	base   string       // URL of these requests, which may differ from the URL for clients
}

// Remote returns a target that soak did not start.
func Remote(url, token string) *Target {
	return &Target{URL: url, Token: token, base: url, client: &http.Client{
		Timeout: time.Minute, Transport: runnerTransport(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // a redirect is a response, too
	}}
}

// runnerTransport returns a transport that uses proxies and verifies certificates as the runners do. Like them, it
// respects K6_INSECURE_SKIP_TLS_VERIFY.
func runnerTransport() http.RoundTripper {
	insecure, _ := strconv.ParseBool(os.Getenv("K6_INSECURE_SKIP_TLS_VERIFY"))
	return proxy.Chooser(nil).Transport(&http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: insecure}, // #nosec G402 -- as k6 does if the user sets the variable
		ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute,
	})
}

// RemoteVia returns a remote target. soak sends its own requests, such as for the ledger, to address, which may differ
// from the address in url. address is HOST or HOST:PORT.
func RemoteVia(url, token, address string) *Target {
	t := Remote(url, token)
	t.base = "http://" + address
	return t
}

// clientOf returns a client that connects to address by dial, whatever the URL, and thus bypasses nginx.
func clientOf(network, address string, dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Client {
	return &http.Client{
		Timeout:   time.Minute,
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, network, address) }},
	}
}

func (t *Target) get(ctx context.Context, path string) (*http.Response, error) {
	return get(ctx, t.client, t.base+path, t.Token)
}

// get sends a GET request, with token as bearer token unless it is "".
func get(ctx context.Context, client *http.Client, url, token string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return client.Do(req)
}

type health struct {
	Version  string  `json:"version"`
	Interval float64 `json:"noop_interval_s"`
}

// health returns the content of /healthz, or a zero value if the target is not our backend. It reads only a JSON body,
// because another service may respond with an event stream.
func (t *Target) health(ctx context.Context) (h health, err error) {
	ctx, cancel := context.WithTimeout(ctx, ReadyTimeout)
	defer cancel()
	resp, err := t.get(ctx, "/healthz")
	if err != nil {
		return health{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		return health{}, nil
	}
	if json.NewDecoder(io.LimitReader(resp.Body, 1<<16)).Decode(&h) != nil || h.Interval == 0 {
		return health{}, nil
	}
	return h, nil
}

// Probe returns an error if nothing responds at the target's address, or if our backend sends noops at a different
// interval. An interval of 0 matches any interval. Another service may lack /healthz, so Probe accepts every HTTP
// response from it.
func (t *Target) Probe(ctx context.Context, interval time.Duration) error {
	h, err := t.health(ctx)
	if err != nil {
		if errWithRemedy := proxy.WithRemedy(err); errWithRemedy != err {
			return fmt.Errorf("connect to %s: %w", t.host(), errWithRemedy)
		}
		return fmt.Errorf("connect to %s: %w; check that the service runs and that its URL is correct", t.host(), err)
	}
	if actual := time.Duration(h.Interval * float64(time.Second)); actual > 0 && interval > 0 && actual != interval {
		return fmt.Errorf("the backend sends a noop every %v, but the plan has %v; set NOOP_INTERVAL to the interval of the backend", actual, interval)
	}
	return nil
}

// ReadyTimeout is the time limit for a response of a target. Tests shorten it.
var ReadyTimeout = 10 * time.Second

// Ready waits until the target responds, at most ReadyTimeout. A backend that soak started must report that it is
// ready. For any other service, every response is enough.
func (t *Target) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ReadyTimeout)
	defer cancel()
	if t.Local != nil {
		return t.Local.ready(ctx)
	}
	return awaitAnswer(ctx, t.host(), func() error {
		resp, err := t.get(ctx, "/healthz")
		if err != nil {
			return err
		}
		return resp.Body.Close()
	})
}

func awaitAnswer(ctx context.Context, name string, request func() error) error {
	for err := request(); err != nil; err = request() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s no longer answers: %w", name, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

func (t *Target) host() string {
	u, err := url.Parse(t.URL)
	if err != nil {
		return t.URL
	}
	return u.Host
}

// Ledger copies the server's own ledger of the ids that begin with prefix to w. hasLedger is false unless the whole
// ledger was copied; err is nil if the service has no ledger. If hasLedger is true, an error means that the ledger
// lacks closed ids.
func (t *Target) Ledger(ctx context.Context, prefix string, w io.Writer) (hasLedger bool, err error) {
	resp, err := t.get(ctx, "/event/ledger?prefix="+url.QueryEscape(prefix))
	if err != nil {
		return false, fmt.Errorf("the ledger of the backend could not be read: %w", err)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		return false, fmt.Errorf("the backend refused access to its ledger (%s); set BACKEND_TOKEN", resp.Status)
	case resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/x-ndjson"):
		return false, nil // a foreign service
	}
	if n := resp.Header.Get("X-Ledger-Evicted"); n != "" && n != "0" {
		err = fmt.Errorf("the ledger of the backend is incomplete, because it exceeded LEDGER_KEEP (removed ids: %s); raise LEDGER_KEEP of the backend", n)
	}
	if _, copyErr := io.Copy(w, resp.Body); copyErr != nil {
		return false, fmt.Errorf("read the backend's ledger: %w", copyErr)
	}
	return true, err
}

// ModelLedger copies the numbered model's ledger of the ids that begin with prefix to w. It returns false if the target
// does not respond with status 200. If it could not copy the whole page, it also returns an error. The caller must
// check that the page is a ledger.
func (t *Target) ModelLedger(ctx context.Context, prefix string, w io.Writer) (hasLedger bool, err error) {
	page, ok := openPage(ctx, t.client, t.base+"/ledger?prefix="+url.QueryEscape(prefix), "")
	if !ok {
		return false, nil
	}
	defer page.Close()
	_, err = io.Copy(w, page)
	return err == nil, err
}

// Metrics returns the backend's metrics page. ok is false if the target has no such page.
func (t *Target) Metrics(ctx context.Context) (page io.ReadCloser, ok bool) {
	return openPage(ctx, t.client, t.base+"/metrics", t.Token)
}

// Version returns the version of our backend; "" for any other service.
func (t *Target) Version(ctx context.Context) string {
	h, _ := t.health(ctx)
	return h.Version
}

// openPage returns the body of a page. ok is false unless the response is 200.
func openPage(ctx context.Context, client *http.Client, url, token string) (page io.ReadCloser, ok bool) {
	resp, err := get(ctx, client, url, token)
	if err != nil {
		return nil, false
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, false
	}
	return resp.Body, true
}
