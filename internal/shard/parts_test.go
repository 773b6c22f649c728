package shard

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
)

// The order of the shards does not change the sums, and a merge does not modify its inputs.
func TestPartsOfShardsAddUp(t *testing.T) {
	t.Parallel()
	one, two, none := newControlShard(1, nil), newControlShard(2, nil), newControlShard(3, nil)
	one.Codings = []Coding{{"zstd", 1, 2, 0, 0}, {"gzip", 3, 40, 2, 10}}
	two.Codings = []Coding{{"gzip", 1, 10, 1, 4}, {"br", 1, 0, 0, 0}}
	one.HTTP2, two.HTTP2 = &HTTP2{Streams: 300, Connections: 3}, &HTTP2{Streams: 100, Connections: 1}
	for _, origin := range []string{"http://b", "http://c", "http://b"} {
		one.Redirects = AddRedirect(one.Redirects, origin)
	}
	two.Redirects = []Redirect{{"http://c", 4}, {"http://a", 2}}
	before := jsonOf(t, one) + jsonOf(t, two)
	for _, order := range [][]*Shard{{one, two, none}, {none, two, one}} {
		m := Merge(plan.Plan{}, order)
		require.Equal(t, []Coding{{"br", 1, 0, 0, 0}, {"gzip", 4, 50, 3, 14}, {"zstd", 1, 2, 0, 0}}, m.Codings)
		require.Equal(t, &HTTP2{Streams: 400, Connections: 4, MaxPerRunner: 3}, m.HTTP2)
		require.Equal(t, []Redirect{{"http://c", 5}, {"http://a", 2}, {"http://b", 2}}, m.Redirects)
	}
	require.Equal(t, before, jsonOf(t, one)+jsonOf(t, two))
	require.Nil(t, Merge(plan.Plan{}, []*Shard{none}).HTTP2)
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
