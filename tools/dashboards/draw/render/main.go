// Command render draws the dashboards from a Prometheus that watched a run.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/sse-soak/sse-soak/tools/dashboards/draw"
	"github.com/sse-soak/sse-soak/tools/dashboards/query"
)

func main() {
	var v query.View
	flag.StringVar(&v.Prometheus, "prometheus", "http://127.0.0.1:9090", "address of Prometheus, with its path prefix")
	out := flag.String("out", ".", "folder for the SVG")
	testid := flag.String("testid", "", "the run")
	instance := flag.String("instance", ".*", "regular expression")
	flag.TextVar(&v.Range.End, "to", time.Now(), "RFC 3339")
	flag.TextVar(&v.Range.Start, "from", time.Time{}, "RFC 3339; an hour before the end if left out")
	flag.Parse()
	if v.Range.Start.IsZero() {
		v.Range.Start = v.Range.End.Add(-time.Hour)
	}
	v.Range.Step = max(v.Range.End.Sub(v.Range.Start)/400, time.Second).Round(time.Second)
	v.Variables = map[string]string{"testid": *testid, "instance": *instance}
	if !v.Range.Start.Before(v.Range.End) {
		fmt.Fprintln(os.Stderr, "render: --from has to be before --to")
		os.Exit(64)
	}
	if err := draw.Files(context.Background(), *out, v); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
