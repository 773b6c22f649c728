package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/sse-soak/sse-soak/internal/capsule"
	"github.com/sse-soak/sse-soak/internal/replay"
)

// show starts Prometheus and Grafana on an unpacked capsule, says where they are, and ends them when ctx ends.
func show(ctx context.Context, c capsule.Contents, dir, tmp string, out io.Writer) error {
	if c.Prometheus.Missing != "" {
		fmt.Fprintln(out, "There is no data of Prometheus in it, so nothing is started. Ctrl-C removes what was unpacked, unless --dir says where to.")
		<-ctx.Done()
		return nil
	}
	shown := replay.Span{From: c.Started.Add(-shownAround), To: c.Ended.Add(shownAround)}
	prometheus, err := replay.Prometheus(ctx, tmp)
	if err != nil {
		return err
	}
	defer prometheus.Stop()
	begun := time.Now()
	if err := prometheus.Fill(ctx, filepath.Join(dir, capsule.PrometheusDir, capsule.RequestPattern)); err != nil {
		return err
	}
	query := url.Values{"g0.expr": {"testid:k6_streams:held"}, "g0.tab": {"0"}, "g0.range_input": {span(shown)}, "g0.end_input": {shown.To.UTC().Format("2006-01-02 15:04:05")}}
	fmt.Fprintf(out, "loaded in %v\nprometheus  %s/graph?%s\n", time.Since(begun).Round(100*time.Millisecond), prometheus.URL, query.Encode())

	grafana, boards, err := replay.Grafana(ctx, tmp, filepath.Join(dir, capsule.DashboardsDir), prometheus, shown, c.TestID)
	if err == nil {
		defer grafana.Stop()
		for _, b := range boards {
			fmt.Fprintf(out, "grafana     %s  (%s)\n", b.URL, b.Title)
		}
	} else if ctx.Err() == nil {
		fmt.Fprintf(os.Stderr, "Grafana shows nothing: %v\nThe dashboards are in %s, for any other Grafana.\n", err, filepath.Join(dir, capsule.DashboardsDir))
	}
	fmt.Fprintln(out, "Ctrl-C ends all of it.")
	select {
	case <-ctx.Done():
		return nil
	case <-prometheus.Done():
		return fmt.Errorf("the Prometheus ended by itself: %s", prometheus.Said())
	}
}

// span is the length of a time as Prometheus reads it.
func span(s replay.Span) string {
	return fmt.Sprintf("%ds", int(s.To.Sub(s.From).Round(time.Second).Seconds()))
}
