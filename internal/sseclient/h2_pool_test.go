package sseclient

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRequestWaitsForAnotherDialUntilDialPatience(t *testing.T) {
	t.Parallel()
	key := siteKey{scheme: "https", host: "h"}
	pool := h2Pool{}
	patience := 20 * time.Millisecond
	reserve := func(ctx context.Context) error {
		c, err := pool.reserve(ctx, key, patience)
		require.Nil(t, c)
		return err
	}
	require.NoError(t, reserve(t.Context()), "the first request must dial")
	start := time.Now()
	require.NoError(t, reserve(t.Context()), "the next request must dial after DialPatience")
	require.GreaterOrEqual(t, time.Since(start), patience)
	require.Equal(t, 2, pool.site(key).dials)

	patience = time.Hour
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	require.ErrorIs(t, reserve(short), context.DeadlineExceeded)
	require.Equal(t, 2, pool.site(key).dials, "a request that timed out must not count as a dial")
	require.Zero(t, pool.site(key).waiters)
}
