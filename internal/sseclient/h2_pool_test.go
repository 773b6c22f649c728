package sseclient

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A request waits for the dial of another one, but not longer than DialPatience or its context.
func TestRequestWaitsForAnotherDialWithALimit(t *testing.T) {
	t.Parallel()
	key := h2Key{scheme: "https", host: "h"}
	pool := h2Pool{}
	patience := 20 * time.Millisecond
	place := func(ctx context.Context) error {
		c, err := pool.reserve(ctx, key, patience)
		require.Nil(t, c)
		return err
	}
	require.NoError(t, place(t.Context()), "a request dials after DialPatience")
	start := time.Now()
	require.NoError(t, place(t.Context()), "the next request must dial, too")
	require.GreaterOrEqual(t, time.Since(start), patience)
	require.Equal(t, 2, pool.site(key).dials)

	patience = time.Hour
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	require.ErrorIs(t, place(short), context.DeadlineExceeded)
	require.Equal(t, []int{2, 0}, []int{pool.site(key).dials, pool.site(key).waiting})
}
