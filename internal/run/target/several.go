package target

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Several are targets at different addresses, which the runners share out (plan.BackendOf), because one process, or
// one address, has a limited number of streams. They have one token.
type Several []*Target

// Remotes are targets that run elsewhere; with certificates they want one of their clients.
func Remotes(urls []string, token string, c Certificates) (all Several, err error) {
	for _, url := range urls {
		t := Remote(url, token)
		if c != "" {
			if err := t.secure(c); err != nil {
				return nil, err
			}
		}
		all = append(all, t)
	}
	return all, nil
}

// StartLocals starts that many targets here, each for the connections that c says. After an
// error nothing is left.
func StartLocals(ctx context.Context, c LocalConfig, count int) (all Several, err error) {
	if c.Token, err = newToken(); err != nil {
		return nil, err
	}
	suffix := c.Suffix
	for n := 1; n <= count; n++ {
		if count > 1 {
			c.Suffix = fmt.Sprintf("%s-%d", suffix, n)
		}
		t, err := StartLocal(ctx, c)
		if err != nil {
			all.Stop(ctx)
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// URL is what a plan says of them.
func (s Several) URL() string {
	urls := make([]string, len(s))
	for i, t := range s {
		urls[i] = t.URL
	}
	return strings.Join(urls, ",")
}

// Local is whether they run here.
func (s Several) Local() bool { return len(s) > 0 && s[0].Local != nil }

// Nginx returns the version of the nginx in front of each, "" if soak started none.
func (s Several) Nginx() string {
	if !s.Local() {
		return ""
	}
	return s[0].Local.Nginx
}

// Probe probes each; see Target.Probe.
func (s Several) Probe(ctx context.Context, interval time.Duration) error {
	for _, t := range s {
		if err := t.Probe(ctx, interval); err != nil {
			return err
		}
	}
	return nil
}

// Ledger copies the ledgers of all to w. kept is false unless all keep one: a part of the ledger would accuse the others.
func (s Several) Ledger(ctx context.Context, prefix string, w io.Writer) (hasLedger bool, err error) {
	for _, t := range s {
		one, oneErr := t.Ledger(ctx, prefix, w)
		err = errors.Join(err, oneErr)
		if !one {
			return false, err
		}
	}
	return true, err
}

// Ready waits until each answers, which after a crash takes a moment.
func (s Several) Ready(ctx context.Context) (err error) {
	for _, t := range s {
		err = errors.Join(err, t.Ready(ctx))
	}
	return err
}

// Crashes returns the crashes of the processes that soak started.
func (s Several) Crashes() (crashes []Crash) {
	for _, t := range s {
		if t.Local != nil {
			crashes = append(crashes, t.Local.Crashes()...)
		}
	}
	return crashes
}

// Stop ends those that are ours; see Local.Stop.
func (s Several) Stop(ctx context.Context) {
	for _, t := range s {
		if t.Local != nil {
			t.Local.Stop(ctx)
		}
	}
}
