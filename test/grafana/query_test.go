package grafana

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var minute = View{Range: prometheus.Range{Start: time.Unix(0, 0), End: time.Unix(60, 0), Step: 5 * time.Second}}

func TestFill(t *testing.T) {
	v := minute
	v.Variables = map[string]string{"testid": "a", "streams": "7"}
	for expr, want := range map[string]string{
		`m{testid="$testid"}`:     `m{testid="a"}`,
		`vector(${streams})`:      `vector(7)`,
		`rate(m[$__range])`:       `rate(m[60s])`,
		`m[$__rate_interval]`:     `m[20s]`,
		`m[$__interval]`:          `m[5s]`,
		`{x="$unknown"} $testids`: `{x="$unknown"} $testids`,
	} {
		assert.Equal(t, want, v.fill(expr))
	}
	_, err := v.Ask(context.Background(), `m{x="$unknown"}`)
	require.ErrorContains(t, err, "$unknown has no value")
}

// newView returns a view of a Prometheus server that answers all queries with a status and a body.
func newView(t *testing.T, status int, body string) View {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	v := minute
	v.Prometheus = server.URL
	return v
}

func TestAskOmitsNaNAndInf(t *testing.T) {
	v := newView(t, http.StatusOK, `{"status":"success","data":{"resultType":"matrix","result":[
		{"metric":{"a":"b"},"values":[[1.5,"2"],[6.5,"NaN"],[11.5,"+Inf"]]},{"metric":{},"values":[[1,"NaN"]]}]}}`)
	got, err := v.Ask(context.Background(), "m")
	require.NoError(t, err)
	require.Len(t, got, 1)
	assert.Equal(t, []model.SamplePair{{Timestamp: 1500, Value: 2}}, got[0].Values)
}

func TestAskReturnsPrometheusErrors(t *testing.T) {
	v := newView(t, http.StatusBadRequest, `{"status":"error","errorType":"bad_data","error":"parse error: no"}`)
	_, err := v.Ask(context.Background(), "m{")
	require.ErrorContains(t, err, "parse error")
}
