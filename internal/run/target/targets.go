package target

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/proxy"
)

// Targets is the list of the targets of a run, with different addresses but the same token. One process, or one
// address, supports a limited number of streams. plan.BackendOf assigns one target to each runner.
type Targets []*Target

// Remotes returns targets that soak did not start. Requests to them use the client certificate of c, unless c is "".
func Remotes(urls []string, token string, c Certificates) (targets Targets, err error) {
	for _, url := range urls {
		t := Remote(url, token)
		if c != "" {
			conf, err := c.Client()
			if err != nil {
				return nil, err
			}
			t.client.Transport = proxy.Chooser(nil).Transport(&http.Transport{TLSClientConfig: conf})
		}
		targets = append(targets, t)
	}
	return targets, nil
}

// StartLocals starts count targets on this machine, each with the settings c. After an error none of them runs.
func StartLocals(ctx context.Context, c LocalConfig, count int) (targets Targets, err error) {
	c.Token = rand.Text()
	suffix := c.Suffix
	for n := 1; n <= count; n++ {
		if count > 1 {
			c.Suffix = fmt.Sprintf("%s-%d", suffix, n)
		}
		t, err := StartLocal(ctx, c)
		if err != nil {
			targets.Stop(ctx)
			return nil, err
		}
		targets = append(targets, t)
	}
	return targets, nil
}

// URL returns the URLs in the notation of BACKEND_URL.
func (s Targets) URL() string {
	urls := make([]string, len(s))
	for i, t := range s {
		urls[i] = t.URL
	}
	return strings.Join(urls, ",")
}

// IsLocal reports whether soak started the targets on this machine.
func (s Targets) IsLocal() bool { return len(s) > 0 && s[0].Local != nil }

// Nginx returns the version of nginx; "" if soak started none.
func (s Targets) Nginx() string {
	if !s.IsLocal() {
		return ""
	}
	return s[0].Local.Nginx
}

// Probe calls Target.Probe for each target.
func (s Targets) Probe(ctx context.Context, interval time.Duration) error {
	for _, t := range s {
		if err := t.Probe(ctx, interval); err != nil {
			return err
		}
	}
	return nil
}

// Ledger copies the ledgers of all targets to w. hasLedger is false unless all have one, because the streams of a
// target without a ledger would be missing from the sum.
func (s Targets) Ledger(ctx context.Context, prefix string, w io.Writer) (hasLedger bool, err error) {
	for _, t := range s {
		found, ledgerErr := t.Ledger(ctx, prefix, w)
		err = errors.Join(err, ledgerErr)
		if !found {
			return false, err
		}
	}
	return true, err
}

// Ready waits until all targets are ready, for example after a crash.
func (s Targets) Ready(ctx context.Context) (err error) {
	for _, t := range s {
		err = errors.Join(err, t.Ready(ctx))
	}
	return err
}

// Crashes returns the crashes of the processes that soak started.
func (s Targets) Crashes() (crashes []Crash) {
	for _, t := range s {
		if t.Local != nil {
			crashes = append(crashes, t.Local.Crashes()...)
		}
	}
	return crashes
}

// Stop ends the targets that soak started; see Local.Stop.
func (s Targets) Stop(ctx context.Context) {
	for _, t := range s {
		if t.Local != nil {
			t.Local.Stop(ctx)
		}
	}
}
