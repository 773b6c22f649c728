package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUnknownTopicIsNotFound(t *testing.T) {
	f := &feedService{plan: new(plan), topics: []*priceTopic{{}}}
	for _, topic := range []string{"-1", "1", "x", ""} {
		w := httptest.NewRecorder()
		f.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/feed?topic="+topic, nil))
		require.Equal(t, http.StatusNotFound, w.Code, topic)
	}
}
