//go:build stack

package stack

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// request sends a request to the stack. credentials are NAME:PASSWORD, a bearer token, or "". After an error, status is
// 0 and body is the error.
func (s *stack) request(method, path, credentials string) (status int, body string) {
	s.t.Helper()
	req, err := http.NewRequest(method, s.url+path, nil)
	require.NoError(s.t, err)
	if name, password, ok := strings.Cut(credentials, ":"); ok {
		req.SetBasicAuth(name, password)
	} else if credentials != "" {
		req.Header.Set("Authorization", "Bearer "+credentials)
	}
	client := http.Client{Timeout: 20 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return resp.StatusCode, string(b)
}

type sample struct {
	Metric map[string]string
	Value  [2]any
}

// query evaluates a query in Prometheus, through nginx. It returns no rows while Prometheus or nginx is down.
func (s *stack) query(expr string) []sample {
	s.t.Helper()
	status, body := s.request(http.MethodGet, "/prometheus/api/v1/query?query="+url.QueryEscape(expr), "prometheus:"+s.env["PROMETHEUS_PASSWORD"])
	if status != http.StatusOK {
		return nil
	}
	var response struct{ Data struct{ Result []sample } }
	require.NoError(s.t, json.Unmarshal([]byte(body), &response))
	return response.Data.Result
}

// value returns the value of a query with one row, or "".
func (s *stack) value(expr string) string {
	s.t.Helper()
	rows := s.query(expr)
	if len(rows) != 1 {
		return ""
	}
	return fmt.Sprint(rows[0].Value[1])
}

// await waits until done returns true, for up to a minute. requirement is the message of a failure.
func await(t *testing.T, requirement string, done func() bool) {
	t.Helper()
	for start := time.Now(); !done(); time.Sleep(500 * time.Millisecond) {
		require.Less(t, time.Since(start), time.Minute, requirement)
	}
}
