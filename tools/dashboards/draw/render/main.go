// Command render draws the dashboards from a Prometheus that watched a run.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sse-soak/sse-soak/tools/dashboards/draw"
	"github.com/sse-soak/sse-soak/tools/dashboards/query"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	server := flag.String("prometheus", "http://127.0.0.1:9090", "address of Prometheus, with its path prefix")
	boards := flag.String("dashboards", "grafana/dashboards", "folder with the JSON")
	out := flag.String("out", ".", "folder for the SVG")
	testid := flag.String("testid", "", "the run")
	instance := flag.String("instance", ".*", "regular expression")
	from := flag.String("from", "", "RFC 3339; empty: an hour before the end")
	to := flag.String("to", "", "RFC 3339; empty: now")
	flag.Parse()

	w := query.Window{To: time.Now()}
	var err error
	if *to != "" {
		if w.To, err = time.Parse(time.RFC3339, *to); err != nil {
			return fmt.Errorf("--to: %w", err)
		}
	}
	w.From = w.To.Add(-time.Hour)
	if *from != "" {
		if w.From, err = time.Parse(time.RFC3339, *from); err != nil {
			return fmt.Errorf("--from: %w", err)
		}
	}
	if !w.From.Before(w.To) {
		return fmt.Errorf("--from %s is not before --to %s", *from, *to)
	}
	w.Step = max(w.To.Sub(w.From)/400, time.Second).Round(time.Second)
	all, err := query.Load(*boards)
	if err != nil {
		return err
	}
	values := map[string]string{"testid": *testid, "instance": *instance}
	for _, d := range all {
		if err := draw.File(context.Background(), filepath.Join(*out, d.Name+".svg"), d, query.Prometheus(*server), w, values); err != nil {
			return err
		}
	}
	return nil
}
