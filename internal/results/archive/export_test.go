package archive

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	prompb "buf.build/gen/go/prometheus/prometheus/protocolbuffers/go"
	"github.com/prometheus/client_golang/api"
	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/promserver"
	"github.com/sse-soak/sse-soak/test/untested"
)

// staleMarker is the NaN with which Prometheus ends a series.
const staleMarker uint64 = 0x7ff0000000000002

// The data of one Prometheus server arrives unchanged in another: values exact to the bit, timestamps exact to the
// millisecond, and the ends of series. This includes older data, and series that span several time ranges.
func TestArchivedDataMatchesPrometheus(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	var seriesEnded atomic.Bool // one series ends while Prometheus scrapes
	var scrapes atomic.Int64
	address := "http://" + promserver.Start(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "# TYPE requests_total counter\nrequests_total %d.1\n", scrapes.Add(1))
		if !seriesEnded.Load() {
			fmt.Fprint(w, "ending_series 1\n")
		}
	}))
	original, err := NewRemote(address)
	require.NoError(t, err)
	await(t, address, `ending_series`, func(v model.Vector) bool { return len(v) == 1 })
	seriesEnded.Store(true)
	await(t, address, `ending_series`, func(v model.Vector) bool { return len(v) == 0 })

	// The older samples span several time ranges, and have irregular timestamps and unusual values.
	await(t, address, `count_over_time(requests_total[1m]) >= 3`, func(v model.Vector) bool { return len(v) == 1 })
	now := time.Now().Truncate(time.Millisecond)
	start := now.Add(-25 * time.Minute)
	special := []float64{0.1, math.MaxFloat64, math.SmallestNonzeroFloat64, math.Inf(1), math.Inf(-1), math.NaN(), 1e15 + .3, math.Float64frombits(staleMarker)}
	series := &Series{Labels: []*prompb.Label{{Name: "__name__", Value: "odd"}, {Name: "name", Value: `"ü\` + "\n"}}}
	for i := range 1000 {
		series.Samples = append(series.Samples, &prompb.Sample{Value: special[i%len(special)], Timestamp: start.UnixMilli() + int64(i)*1379 + 1})
	}
	require.NoError(t, original.Write(ctx, []*Series{series}))

	read := func(from *Remote, to time.Time) map[string][]string {
		samples := map[string][]string{}
		require.NoError(t, from.Read(ctx, start, to, func(series []*Series) error {
			for _, s := range series {
				key := fmt.Sprint(s.Labels)
				for _, sample := range s.Samples {
					samples[key] = append(samples[key], fmt.Sprintf("%d %x", sample.Timestamp, math.Float64bits(sample.Value)))
				}
			}
			return nil
		}))
		return samples
	}
	file := filepath.Join(t.TempDir(), ExportFile)
	out, err := os.Create(file)
	require.NoError(t, err)
	windows := 0
	require.NoError(t, original.Read(ctx, start, now, func(series []*Series) error {
		windows++
		return writeRequests(out, series)
	}))
	require.NoError(t, out.Close())
	require.Greater(t, windows, 4)

	loadedServer, err := StartPrometheus(ctx, t.TempDir())
	require.NoError(t, err)
	t.Cleanup(loadedServer.Stop)
	destination, err := NewRemote(loadedServer.URL)
	require.NoError(t, err)
	require.NoError(t, Load(ctx, destination, file))
	want := read(original, now)
	require.Equal(t, want, read(destination, now), "the values and timestamps of all samples must be identical")
	require.Len(t, want[fmt.Sprint(series.Labels)], 1000)
	window := prometheus.Range{Start: start, End: now, Step: 700 * time.Millisecond}
	for _, query := range []string{`odd`, `ending_series`, `rate(requests_total[10s])`, `count_over_time(odd[1m])`, `up`} {
		result := queryRange(t, address, query, window)
		assert.NotEmpty(t, result, query)
		assert.Equal(t, result, queryRange(t, loadedServer.URL, query, window), query)
	}

	process := loadedServer.process
	loadedServer.Stop()
	<-process.Done()
	_, err = http.Get(loadedServer.URL)
	require.Error(t, err, "the server still listens after Stop")
}

// Prometheus before version 3 stores native histograms only with a feature flag.
func TestNativeHistogramsAreArchived(t *testing.T) {
	t.Parallel()
	needsPrometheus(t)
	server, err := StartPrometheus(t.Context(), t.TempDir())
	require.NoError(t, err)
	t.Cleanup(server.Stop)
	to, err := NewRemote(server.URL)
	require.NoError(t, err)
	now := time.Now().Truncate(time.Millisecond)
	require.NoError(t, to.Write(t.Context(), []*Series{{Labels: []*prompb.Label{{Name: "__name__", Value: "native"}}, Histograms: []*prompb.Histogram{{
		Count: &prompb.Histogram_CountInt{CountInt: 3}, Sum: 1.5, Schema: 3, ZeroThreshold: 1e-128, ZeroCount: &prompb.Histogram_ZeroCountInt{ZeroCountInt: 1},
		PositiveSpans: []*prompb.BucketSpan{{Length: 2}}, PositiveDeltas: []int64{1, 0}, Timestamp: now.UnixMilli(),
	}}}}))
	require.Contains(t, queryRange(t, server.URL, `histogram_count(native)`, prometheus.Range{Start: now, End: now, Step: time.Second}), "\n3 @[")
	require.NoError(t, to.Read(t.Context(), now.Add(-10*time.Second), now.Add(10*time.Second), func(series []*Series) error {
		for _, s := range series {
			require.Positive(t, samplesOf(s), "Read must omit the empty series that Prometheus 2.42 returns")
		}
		return nil
	}))
}

func TestErrorsNameTheOperation(t *testing.T) {
	t.Parallel()
	address := "http://" + serve(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "out of order", http.StatusBadRequest) })
	remote, err := NewRemote(address)
	require.NoError(t, err)
	want := " Prometheus at " + address + ": 400 Bad Request: out of order"
	require.EqualError(t, remote.Read(t.Context(), time.Now(), time.Now(), nil), "query"+want)
	require.EqualError(t, remote.Write(t.Context(), nil), "write to"+want)

	address = "http://" + serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	remote, err = NewRemote(address)
	require.NoError(t, err)
	require.EqualError(t, remote.Write(t.Context(), nil), "write to Prometheus at "+address+": 502 Bad Gateway")
}

func TestInterruptedStartReturnsItsCause(t *testing.T) {
	t.Parallel()
	needsPrometheus(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, err := StartPrometheus(ctx, t.TempDir())
	require.ErrorIs(t, err, context.Canceled, "the cause must be the interruption, not a timeout")
}

func needsPrometheus(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("prometheus"); err != nil {
		untested.SkipMissing(t, "prometheus is not installed: apt-get install prometheus")
	}
}

func TestPrometheusMustBeInstalled(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := StartPrometheus(t.Context(), t.TempDir())
	require.ErrorContains(t, err, "the program is not installed; install it")
}

func newAPI(t *testing.T, address string) prometheus.API {
	t.Helper()
	client, err := api.NewClient(api.Config{Address: address})
	require.NoError(t, err)
	return prometheus.NewAPI(client)
}

// await waits until accept returns true for the result of a query.
func await(t *testing.T, address, query string, accept func(model.Vector) bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		got, _, err := newAPI(t, address).Query(context.Background(), query, time.Now())
		vector, ok := got.(model.Vector)
		return err == nil && ok && accept(vector)
	}, time.Minute, 100*time.Millisecond, query)
}

func queryRange(t *testing.T, address, query string, window prometheus.Range) string {
	t.Helper()
	got, _, err := newAPI(t, address).QueryRange(t.Context(), query, window)
	require.NoError(t, err)
	return got.String()
}
