package shard

import (
	"cmp"
	"errors"
	"slices"
	"strings"
)

// A Redirect counts the streams that were redirected to one other origin.
type Redirect struct {
	Origin  string `json:"origin,omitempty"` // scheme, host and port; "": long origins, and origins beyond maxOrigins
	Streams int    `json:"streams"`
}

const (
	maxOrigins    = 100 // of a runner
	longestOrigin = 300 // bytes; a DNS name has at most 253
)

// AddRedirect adds a stream that was redirected to an origin. Long origins, and origins beyond maxOrigins, count as "".
func AddRedirect(redirects []Redirect, origin string) []Redirect {
	known := slices.ContainsFunc(redirects, func(r Redirect) bool { return r.Origin == origin })
	if len(origin) > longestOrigin || !known && len(redirects) >= maxOrigins {
		origin = ""
	}
	return addRedirect(redirects, Redirect{Origin: origin, Streams: 1})
}

func addRedirect(redirects []Redirect, other Redirect) []Redirect {
	i := slices.IndexFunc(redirects, func(r Redirect) bool { return r.Origin == other.Origin })
	if i < 0 {
		return append(redirects, other)
	}
	redirects[i].Streams += other.Streams
	return redirects
}

func (m *Merged) addRedirects(s *Shard) {
	for _, r := range s.Redirects {
		m.Redirects = addRedirect(m.Redirects, r)
	}
	slices.SortFunc(m.Redirects, func(a, b Redirect) int {
		return cmp.Or(cmp.Compare(b.Streams, a.Streams), cmp.Compare(a.Origin, b.Origin))
	})
}

func (s *Shard) checkRedirects() error {
	isInvalid := func(r Redirect) bool {
		isUnprintable := func(c rune) bool { return c <= ' ' || c >= 0x7f }
		return len(r.Origin) > longestOrigin || strings.ContainsFunc(r.Origin, isUnprintable) || !areCounts(r.Streams)
	}
	if len(s.Redirects) > maxOrigins+1 || slices.ContainsFunc(s.Redirects, isInvalid) {
		return errors.New("impossible redirects")
	}
	return nil
}
