package shard

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
)

func TestRedirectsAddUp(t *testing.T) {
	t.Parallel()
	one, two := newControlShard(1, nil), newControlShard(2, nil)
	for _, origin := range []string{"http://b", "http://c", "http://b"} {
		one.Redirects = AddRedirect(one.Redirects, origin)
	}
	two.Redirects = []Redirect{{"http://c", 4}, {"http://a", 2}}
	want := []Redirect{{"http://c", 5}, {"http://a", 2}, {"http://b", 2}}
	require.Equal(t, want, Merge(plan.Plan{}, []*Shard{one, two}).Redirects)
	require.Equal(t, want, Merge(plan.Plan{}, []*Shard{two, one}).Redirects)
	require.Equal(t, []Redirect{{"http://b", 2}, {"http://c", 1}}, one.Redirects, "a merge does not modify its inputs")
}

func TestRedirectOriginsAreBounded(t *testing.T) {
	t.Parallel()
	s := new(Shard)
	for i := range 2 * maxOrigins {
		s.Redirects = AddRedirect(s.Redirects, fmt.Sprintf("http://h%d", i))
	}
	s.Redirects = AddRedirect(s.Redirects, strings.Repeat("x", longestOrigin+1))
	require.Len(t, s.Redirects, maxOrigins+1)
	require.Equal(t, Redirect{"", maxOrigins + 1}, s.Redirects[maxOrigins])
	require.NoError(t, s.checkRedirects())
	for _, hostile := range []Redirect{{"http://a", -1}, {"http://a", maxNumber + 1}, {strings.Repeat("x", longestOrigin+1), 1}, {"\x1b[2J", 1}, {"http://\u202e", 1}} {
		require.Error(t, (&Shard{Redirects: []Redirect{hostile}}).checkRedirects(), hostile)
	}
	require.Error(t, (&Shard{Redirects: make([]Redirect, maxOrigins+2)}).checkRedirects())
}
