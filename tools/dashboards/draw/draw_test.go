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
	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/tools/dashboards"
	"github.com/sse-soak/sse-soak/tools/dashboards/query"
)

func TestFormat(t *testing.T) {
	for _, c := range []struct {
		value float64
		unit  string
		want  string
	}{
		{0, units.NoUnit, "0"}, {1234, units.NoUnit, "1234"}, {100, units.NoUnit, "100"}, {.5, units.NoUnit, "0.5"},
		{1, units.PercentUnit, "100 %"}, {0, units.PercentUnit, "0 %"}, {.0123, units.PercentUnit, "1.23 %"},
		{0, units.Seconds, "0 s"}, {.0000123, units.Seconds, "12.3 µs"}, {.25, units.Seconds, "250 ms"}, {15, units.Seconds, "15 s"},
		{600, units.Seconds, "10 min"}, {90, units.Seconds, "1.5 min"}, {36000, units.Seconds, "10 h"},
		{1536, units.BytesIEC, "1.5 KiB"}, {-2e6, units.BytesSI, "-2 MB"}, {999, units.BytesPerSecondSI, "999 B/s"},
		{80, "suffix:events/s", "80 events/s"},
	} {
		assert.Equal(t, c.want, format(c.value, c.unit))
	}
}

func TestTicksHoldAllValues(t *testing.T) {
	for _, c := range [][2]float64{{0, 1}, {0, .00034}, {-7, 1234}, {-5e9, 0}, {0, 100}, {0, 0}} {
		got := ticks(&dashboards.Panel{Unit: units.NoUnit}, []line{of(c[0], c[1])})
		assert.LessOrEqual(t, got[0], c[0])
		assert.GreaterOrEqual(t, got[len(got)-1], c[1])
		assert.LessOrEqual(t, len(got), 8)
		assert.Greater(t, len(got), 1)
	}
	limited := ticks(&dashboards.Panel{Limit: &dashboards.Limit{At: 7}}, []line{of(1, 2)})
	assert.GreaterOrEqual(t, limited[len(limited)-1], 7.)
}

// of is a line with a value a second.
func of(values ...float64) line {
	s := &model.SampleStream{}
	for i, v := range values {
		s.Values = append(s.Values, model.SamplePair{Timestamp: model.Time(1000 * i), Value: model.SampleValue(v)})
	}
	return line{Series: query.Series{SampleStream: s}}
}

func TestTicksOfBytesAreRound(t *testing.T) {
	assert.Equal(t, []float64{0, 4 << 20, 8 << 20, 12 << 20, 16 << 20, 20 << 20}, ticks(&dashboards.Panel{Unit: units.BytesIEC}, []line{of(0, 18<<20)}))
}

func TestPathBreaksWhereDataIsMissing(t *testing.T) {
	points := of(1, 2, 3).Values
	points[2].Timestamp = 9000
	x := func(t time.Time) float64 { return float64(t.Unix()) }
	y := func(v float64) float64 { return v }
	assert.Equal(t, "M0.0 1.0L1.0 2.0M9.0 3.0", path(points, x, y, time.Second))
}

func TestStackAddsUpByTime(t *testing.T) {
	lines := []line{of(1), of(1)}
	stack(lines)
	assert.InDelta(t, 2, lines[1].Last(), 0)
}

func TestAHeatMapShowsWhatEachBucketAdds(t *testing.T) {
	lines := []line{of(3, 3), of(2, 3)}
	lines[0].name, lines[1].name = "+Inf", "0.1"
	s := &sheet{view: answering(t, "")}
	s.heat(box{w: 200, h: 200}, lines)
	assert.Equal(t, "0.1", lines[0].name)
	assert.InDelta(t, 0, lines[1].Last(), 0)
	assert.Equal(t, 3, strings.Count(s.String(), "<rect"), "two of one bucket, one of the other")
}

func answering(t *testing.T, body string) query.View {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(body)) }))
	t.Cleanup(server.Close)
	return query.View{
		Prometheus: server.URL, Range: prometheus.Range{Start: time.Unix(0, 0), End: time.Unix(60, 0), Step: time.Second},
		Variables: map[string]string{"testid": "t", "instance": ".*"},
	}
}

func TestEveryDashboardBecomesAnSVG(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, Files(context.Background(), folder, answering(t, `{"status":"success","data":{"resultType":"matrix","result":[
		{"metric":{"reason":"a<b"},"values":[[1,"2"],[2,"3"]]},{"metric":{},"values":[[1,"-1"],[40,"7"]]}]}}`)))
	for _, b := range dashboards.Boards() {
		text, err := os.ReadFile(filepath.Join(folder, b.Name+".svg"))
		require.NoError(t, err)
		wellFormed(t, string(text))
		for _, tile := range b.Tiles() {
			if tile.Panel != nil {
				assert.True(t, strings.Contains(string(text), html.EscapeString(tile.Panel.Title)), tile.Panel.Title)
			}
		}
	}
}

func TestAQueryThatFailsIsNamed(t *testing.T) {
	v := answering(t, `{"status":"error","error":"no"}`)
	err := (&sheet{view: v}).panel(context.Background(), &dashboards.Panel{Title: "p", Queries: []dashboards.Query{{Expr: "m"}}}, box{})
	require.ErrorContains(t, err, "p: ask Prometheus m")
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
