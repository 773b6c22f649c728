package query

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var minute = Window{From: time.Unix(0, 0), To: time.Unix(60, 0), Step: 5 * time.Second}

func TestFill(t *testing.T) {
	values := map[string]string{"testid": "a", "streams": "7"}
	for expr, want := range map[string]string{
		`m{testid="$testid"}`:     `m{testid="a"}`,
		`vector(${streams})`:      `vector(7)`,
		`rate(m[$__range])`:       `rate(m[60s])`,
		`m[$__rate_interval]`:     `m[20s]`,
		`m[$__interval]`:          `m[5s]`,
		`{x="$unknown"} $testids`: `{x="$unknown"} $testids`,
	} {
		assert.Equal(t, want, minute.Fill(expr, values))
	}
}

func TestMetrics(t *testing.T) {
	assert.Equal(t, []string{"k6_vus", "node_load1"}, Metrics(`sum(node_load1{x="go_home"}) / k6_vus + k6_vus + a:node_x:b`))
	assert.Empty(t, Metrics(`vector(1)`))
}

func TestName(t *testing.T) {
	s := Series{Labels: map[string]string{"reason": "idle"}}
	assert.Equal(t, "by idle", s.Name("by {{reason}} {{instance}}"))
}

func TestRangeLeavesOutWhatIsNoNumber(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(`{"status":"success","data":{"result":[
			{"metric":{"a":"b"},"values":[[1.5,"2"],[6.5,"NaN"],[11.5,"+Inf"]]},{"metric":{},"values":[[1,"NaN"]]}]}}`))
	}))
	defer server.Close()
	got, err := Prometheus(server.URL).Range(context.Background(), "m", minute)
	require.NoError(t, err)
	require.Len(t, got, 1)
	assert.Equal(t, []Point{{At: time.UnixMilli(1500), Value: 2}}, got[0].Points)
}

func TestRangeTellsWhatPrometheusSays(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"status":"error","error":"parse error: no"}`))
	}))
	defer server.Close()
	_, err := Prometheus(server.URL).Range(context.Background(), "m{", minute)
	require.ErrorContains(t, err, "parse error")
}

func TestLoad(t *testing.T) {
	boards, err := Load("../../../grafana/dashboards")
	require.NoError(t, err)
	require.Len(t, boards, 5)
	for _, d := range boards {
		assert.NotEmpty(t, d.Panels)
		assert.NotEmpty(t, d.Annotations)
	}
	_, err = Load(t.TempDir())
	require.ErrorContains(t, err, "no dashboard")
}
