package draw

import (
	"context"
	"encoding/xml"
	"errors"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/grafana/grafana-foundation-sdk/go/units"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/tools/dashboards/query"
)

func TestFormat(t *testing.T) {
	for _, c := range []struct {
		value float64
		unit  string
		want  string
	}{
		{0, units.Short, "0"}, {1234, units.Short, "1.23 k"}, {100, units.Short, "100"}, {.5, units.Short, "0.5"},
		{1, units.PercentUnit, "100 %"}, {.0123, units.PercentUnit, "1.23 %"},
		{0, units.Seconds, "0 s"}, {.0000123, units.Seconds, "12.3 µs"}, {.25, units.Seconds, "250 ms"}, {15, units.Seconds, "15 s"},
		{600, units.Seconds, "10 min"}, {36000, units.Seconds, "10 h"},
		{1536, units.BytesIEC, "1.5 KiB"}, {-2e6, units.BytesSI, "-2 MB"}, {999, units.BytesPerSecondSI, "999 B/s"},
		{80, units.EventsPerSecond, "80 /s"},
	} {
		assert.Equal(t, c.want, Format(c.value, c.unit))
	}
}

func TestTicksHoldAllValues(t *testing.T) {
	for _, c := range [][2]float64{{0, 1}, {0, .00034}, {-7, 1234}, {-5e9, 0}, {0, 100}} {
		got := ticks(c[0], c[1], units.Short)
		assert.LessOrEqual(t, got[0], c[0])
		assert.GreaterOrEqual(t, got[len(got)-1], c[1])
		assert.LessOrEqual(t, len(got), 8)
	}
}

func TestTicksOfBytesAreRound(t *testing.T) {
	assert.Equal(t, []float64{0, 5 << 20, 10 << 20, 15 << 20, 20 << 20}, ticks(0, 18<<20, units.BytesIEC))
}

func TestPathBreaksWhereDataIsMissing(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	points := []query.Point{{At: at(0), Value: 1}, {At: at(1), Value: 2}, {At: at(9), Value: 3}}
	x := func(t time.Time) float64 { return float64(t.Unix()) }
	y := func(v float64) float64 { return v }
	assert.Equal(t, "M0.0 1.0L1.0 2.0M9.0 3.0", path(points, x, y, time.Second))
}

func TestStackAddsUpByTime(t *testing.T) {
	at := time.Unix(1, 0)
	one := query.Series{Points: []query.Point{{At: at, Value: 1}}}
	lines := []line{{series: one}, {series: one}}
	stack(lines)
	assert.InDelta(t, 2, lines[1].series.Last(), 0)
	assert.InDelta(t, 1, one.Last(), 0, "the original is left alone")
}

func TestEveryDashboardBecomesAnSVG(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(`{"status":"success","data":{"result":[
			{"metric":{"reason":"a<b"},"values":[[1,"2"],[2,"3"]]},{"metric":{},"values":[[1,"-1"],[40,"7"]]}]}}`))
	}))
	defer server.Close()
	boards, err := query.Load("../../../grafana/dashboards")
	require.NoError(t, err)
	w := query.Window{From: time.Unix(0, 0), To: time.Unix(60, 0), Step: time.Second}
	for _, d := range boards {
		path := filepath.Join(t.TempDir(), d.Name+".svg")
		require.NoError(t, File(context.Background(), path, d, query.Prometheus(server.URL), w, nil))
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		wellFormed(t, string(text))
		for _, p := range d.Panels {
			assert.True(t, strings.Contains(string(text), html.EscapeString(p.Title)), p.Title)
		}
	}
}

func TestAQueryThatFailsIsNamed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(`{"status":"error","error":"no"}`))
	}))
	defer server.Close()
	d := query.Dashboard{Name: "d", Panels: []query.Panel{{Title: "p", Queries: []query.Query{{Expr: "m"}}}}}
	w := query.Window{From: time.Unix(0, 0), To: time.Unix(60, 0), Step: time.Second}
	err := File(context.Background(), filepath.Join(t.TempDir(), "x.svg"), d, query.Prometheus(server.URL), w, nil)
	require.ErrorContains(t, err, "d/p")
}

func wellFormed(t *testing.T, text string) {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(text))
	for {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
	}
}
