package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// ErrNoDocker reports that Grafana cannot be started.
var ErrNoDocker = errors.New("no Docker daemon answers, and Grafana needs one")

// A Span is the time range that dashboards show.
type Span struct{ From, To time.Time }

// A Board is a dashboard of Grafana.
type Board struct{ Title, URL string }

// StartGrafana starts Grafana in Docker with the dashboards in a folder. They show a time range of a Prometheus and of a run.
func StartGrafana(ctx context.Context, dir, dashboards string, prometheus *Server, shown Span, testID string) (*Server, []Board, error) {
	if !docker(ctx) {
		return nil, nil, ErrNoDocker
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, nil, err
	}
	s := &Server{name: "Grafana", URL: "http://127.0.0.1:" + port, log: filepath.Join(dir, "grafana.log")}
	source := prometheus.URL
	if runtime.GOOS != "linux" {
		source = strings.Replace(source, "127.0.0.1", hostInContainer, 1)
	}
	boards, err := provision(dir, dashboards, source, shown)
	if err != nil {
		return nil, nil, fmt.Errorf("prepare the dashboards: %w", err)
	}
	for i := range boards {
		query := url.Values{"from": {fmt.Sprint(shown.From.UnixMilli())}, "to": {fmt.Sprint(shown.To.UnixMilli())}, "var-testid": {testID}}
		boards[i].URL = s.URL + "/d/" + boards[i].URL + "?" + query.Encode()
	}
	var address, inner string
	options := []string{
		"--volume", filepath.Join(dir, "provisioning") + ":/etc/grafana/provisioning:ro", "--volume", filepath.Join(dir, "boards") + ":/var/lib/grafana/dashboards:ro",
	}
	if address, inner = "127.0.0.1", port; runtime.GOOS != "linux" {
		address, inner = "0.0.0.0", "3000"
	}
	for _, setting := range []string{
		"SERVER_HTTP_ADDR=" + address, "SERVER_HTTP_PORT=" + inner, "AUTH_ANONYMOUS_ENABLED=true", "AUTH_ANONYMOUS_ORG_ROLE=Viewer", "USERS_VIEWERS_CAN_EDIT=true",
		"AUTH_DISABLE_LOGIN_FORM=true", "ANALYTICS_REPORTING_ENABLED=false", "ANALYTICS_CHECK_FOR_UPDATES=false", "ANALYTICS_CHECK_FOR_PLUGIN_UPDATES=false",
		"PLUGINS_PREINSTALL_DISABLED=true",
	} {
		options = append(options, "--env", "GF_"+setting)
	}
	if err := s.run(port, "3000", options, GrafanaImage, func(string) []string { return nil }); err != nil {
		return nil, nil, err
	}
	return s, boards, s.await(ctx, "/api/health", pullTimeout)
}

// provision writes the files that Grafana reads at its start. The URL of each board is its uid.
func provision(dir, dashboards, prometheus string, shown Span) (boards []Board, err error) {
	files, err := filepath.Glob(filepath.Join(dashboards, "*.json"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		var board map[string]any
		text, err := os.ReadFile(file) //nolint:gosec // G304: dashboards of this installation
		if err == nil {
			err = json.Unmarshal(text, &board)
		}
		if err != nil {
			return nil, err
		}
		board["time"] = map[string]string{"from": shown.From.Format(time.RFC3339), "to": shown.To.Format(time.RFC3339)}
		board["refresh"] = "" // the data is complete
		title, _ := board["title"].(string)
		uid, _ := board["uid"].(string)
		boards = append(boards, Board{title, url.PathEscape(uid)})
		if err := writeJSON(filepath.Join(dir, "boards", filepath.Base(file)), board); err != nil {
			return nil, err
		}
	}
	return boards, errors.Join(
		writeJSON(filepath.Join(dir, "provisioning", "datasources", "prometheus.yaml"), map[string]any{"apiVersion": 1, "datasources": []any{map[string]any{
			"name": "Prometheus", "uid": "prometheus", "type": "prometheus", "access": "proxy", "url": prometheus, "isDefault": true,
			"jsonData": map[string]string{"timeInterval": "5s", "httpMethod": "POST", "prometheusType": "Prometheus"},
		}}}),
		writeJSON(filepath.Join(dir, "provisioning", "dashboards", "dashboards.yaml"), map[string]any{"apiVersion": 1, "providers": []any{map[string]any{
			"name": "sse-soak", "type": "file", "options": map[string]string{"path": "/var/lib/grafana/dashboards"},
		}}}),
	)
}

// writeJSON writes JSON, which is YAML too.
func writeJSON(file string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // G301: Grafana's container has another user
		return err
	}
	return os.WriteFile(file, text, 0o644) //nolint:gosec // G306: Grafana's container has another user
}
