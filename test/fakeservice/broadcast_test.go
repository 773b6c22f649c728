package fakeservice

import (
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// With SlowKeep, the publisher waits while the queue of a client is full, so no message is lost.
func TestFullQueueKeepsMessages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &Service{ServiceSpec: ServiceSpec{Slow: SlowKeep}}
		st := &noopStream{Stream: &Stream{ClientDone: make(chan struct{}), inbox: make(chan string, 1)}}
		st.inbox <- "first"
		go s.handleFullQueue(httptest.NewRequestWithContext(t.Context(), "POST", "/", nil), st, "second")
		synctest.Wait()
		require.Equal(t, "first", <-st.inbox)
		synctest.Wait()
		require.Len(t, st.inbox, 1)
	})
}
