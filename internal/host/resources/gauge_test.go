package resources

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGaugeOfAPage(t *testing.T) {
	t.Parallel()
	const page = "# TYPE subscribers gauge\nsubscribers{topic=\"a\"} 3\nsubscribers{topic=\"b\"} 4\n# TYPE other gauge\nother 9\n"
	var s Sample
	require.NoError(t, s.FromPage("subscribers")(strings.NewReader(page)))
	require.InDelta(t, 7, *s.Gauge, 0)
	var none Sample
	require.NoError(t, none.FromPage("subscriber")(strings.NewReader(page)))
	require.Nil(t, none.Gauge)
	require.ErrorContains(t, none.FromPage("x")(strings.NewReader("<html>")), "read the metrics page of the service")
}

// A counter of opened streams grows with each stream, like a gauge of open streams.
func TestCounterIsNotAGauge(t *testing.T) {
	t.Parallel()
	const page = "# TYPE opened counter\nopened 7\n# TYPE open gauge\nopen 7\nopened_total 7\n"
	for name, want := range map[string]bool{"opened": true, "open": false, "opened_total": true} {
		var s Sample
		require.NoError(t, s.FromPage(name)(strings.NewReader(page)))
		require.Equal(t, want, s.Counter, name)
	}
	for query, want := range map[string]bool{
		`opened_total`: true, `sum(opened_total{job="a"})`: true, `open`: false, `sum(open)`: false,
		`opened_total - closed_total`: false, `sum(rate(opened_total[1m]))`: false,
	} {
		require.Equal(t, want, counter.MatchString(query), query)
	}
}

func TestGaugeOfPrometheus(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]struct {
		answer string
		sum    float64
		err    string
	}{
		`sum(a)`: {`{"resultType":"scalar","result":[1,"5"]}`, 5, ""},
		`a`:      {`{"resultType":"vector","result":[{"metric":{"x":"1"},"value":[1,"5"]},{"metric":{"x":"2"},"value":[1,"6"]}]}`, 11, ""},
		`a / b`:  {`{"resultType":"vector","result":[{"metric":{"x":"1"},"value":[1,"NaN"]},{"metric":{"x":"2"},"value":[1,"6"]}]}`, 6, ""},
		`a[5m]`:  {`{"resultType":"matrix","result":[]}`, 0, "expected a number, got a matrix"},
	} {
		address := serve(t, func(w http.ResponseWriter, r *http.Request) {
			require.Equal(t, query, r.FormValue("query"))
			fmt.Fprintf(w, `{"status":"success","data":%s}`, want.answer)
		})
		var s Sample
		err := s.FromQuery(t.Context(), address, query)
		if want.err != "" {
			require.ErrorContains(t, err, want.err)
			continue
		}
		require.NoError(t, err)
		require.InDelta(t, want.sum, *s.Gauge, 0, query)
	}
	var s Sample
	require.Error(t, s.FromQuery(t.Context(), "http://127.0.0.1:1", "a"))
}

func TestCheckGauge(t *testing.T) {
	t.Parallel()
	require.NoError(t, CheckGauge("", ""))
	require.NoError(t, CheckGauge("hub:subscribers_total", ""))
	require.NoError(t, CheckGauge("sum(a)", "http://p"))
	require.EqualError(t, CheckGauge("sum(a)", ""), `without PROMETHEUS_URL, GAUGE must be the name of a metric, got "sum(a)"; set PROMETHEUS_URL to use PromQL`)
	require.EqualError(t, CheckGauge("pid:x", ""), `GAUGE must have the id of a process on this machine after pid:, such as pid:1234, got "pid:x"`)
	require.ErrorContains(t, CheckGauge("pid:2147483647", ""), "read the memory of process 2147483647")
	require.NoError(t, CheckGauge(fmt.Sprintf("pid:%d", os.Getpid()), "http://p"))
	var s Sample
	require.NoError(t, s.FromProcess(os.Getpid()))
	require.Greater(t, *s.Gauge, 1e6)
}
