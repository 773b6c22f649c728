package fakeservice

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNoStreamStartsAfterStop(t *testing.T) {
	t.Parallel()
	hub := (&Hub{}).Start(t)
	require.True(t, hub.AddHandler(), "a running hub must accept streams")
	hub.Handlers.Done()
	hub.Stop()
	require.False(t, hub.AddHandler(), "a stopped hub must refuse streams")
	w := httptest.NewRecorder()
	hub.ServeHTTP(w, httptest.NewRequest("GET", "/sub/news", nil))
	require.Empty(t, w.Body.String(), "no stream may be opened")
}
