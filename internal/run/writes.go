package run

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/run/runners"
	"github.com/sse-soak/sse-soak/internal/safefile"
)

// failedWrites returns a sentence about metrics that did not reach Prometheus, from the logs of the runners in a folder; "" if there
// are none.
func failedWrites(dir results.Dir) string {
	logs, _ := filepath.Glob(dir.Path("k6-runner-*.log")) // the pattern is valid
	writes, failedRunners, reason := 0, 0, ""
	for _, path := range logs {
		log, err := safefile.Open(path, safefile.Table)
		if err != nil {
			continue
		}
		count, last := runners.FailedWrites(log)
		_ = log.Close()
		if count > 0 {
			writes, failedRunners, reason = writes+count, failedRunners+1, last
		}
	}
	if writes == 0 {
		return ""
	}
	return fmt.Sprintf("%s of %s to Prometheus failed (the last: %s): the dashboards of this run have gaps; the verdict does not depend on them",
		format.Count(writes, "remote write"), format.Count(failedRunners, "runner"), reason)
}

// writesInterval is the time between two reads of the logs.
const writesInterval = 5 * time.Second

// watchWrites warns once if metrics do not reach Prometheus, while there is time to fix it.
func watchWrites(ctx context.Context, dir results.Dir) {
	tick := time.NewTicker(writesInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if failure := failedWrites(dir); failure != "" {
				printMessage("warning: " + failure)
				return
			}
		}
	}
}
