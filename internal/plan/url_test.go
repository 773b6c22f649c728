package plan

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNormalURL(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/urls.json")
	require.NoError(t, err)
	var cases []struct{ URL, Normal, Error string }
	require.NoError(t, json.Unmarshal(text, &cases))
	for _, c := range cases {
		got, err := NormalURL("BACKEND_URL", c.URL)
		if c.Error != "" {
			require.ErrorContains(t, err, c.Error, c.URL)
			require.NotContains(t, err.Error(), "\n", c.URL)
			continue
		}
		require.NoError(t, err, c.URL)
		require.Equal(t, c.Normal, got, c.URL)
		second, err := NormalURL("BACKEND_URL", got)
		require.NoError(t, err, c.URL)
		require.Equal(t, got, second, "the canonical form must not change")
	}
}

// A merge compares plans, so different spellings of a URL must give equal plans.
func TestSpellingsOfAURLAreNormalized(t *testing.T) {
	t.Parallel()
	p := validPlan()
	for _, spelling := range []string{"HTTP://127.0.0.1:8080//", "http://127.0.0.1:8080/?", "http://127.0.0.1:8080/#", " http://127.0.0.1:8080 "} {
		p.BackendURL = spelling
		require.NoError(t, p.Check(), spelling)
		require.Equal(t, "http://127.0.0.1:8080", p.BackendOf(1), spelling)
	}
	both, err := NormalURLs("BACKEND_URL", "HTTP://A//, http://b/?")
	require.NoError(t, err)
	require.Equal(t, "http://a,http://b", both)
	_, err = NormalURLs("BACKEND_URL", "http://a,")
	require.ErrorContains(t, err, `and name a host, got ""`)
}
