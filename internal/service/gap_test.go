package service

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// A service may announce in a header of the response that it could not resume from the requested id.
func TestGapInAHeader(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		gap, header, requested string
		missed                 bool
	}{
		{"earliest", "Earliest ", "a", true},
		{"earliest", "a", "a", false},
		{"earliest", "", "a", false},
		{AnotherID, "a", "a", false},
		{AnotherID, "b", "a", true},
		{AnotherID, "earliest", "a", true},
		{AnotherID, "", "a", false},
		{AnotherID, "b", "", false}, // the client did not request to resume
	} {
		header := http.Header{}
		if c.header != "" {
			header.Set("Last-Event-ID", c.header)
		}
		r := Resume{Header: true, GapHeader: "last-event-id", GapValue: c.gap}
		require.Equal(t, c.missed, r.Missed(header, []byte(c.requested)), c)
	}
	require.False(t, new(Resume).Missed(http.Header{}, []byte("a")))
}
