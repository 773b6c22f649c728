package run

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/run/runners"
	"github.com/sse-soak/sse-soak/internal/safefile"
)

// prometheusTimeout is short, because the ledger of the target is read only after all queries.
const prometheusTimeout = 15 * time.Second

// queryPrometheus stores the records of the machines that the Prometheus server at PROMETHEUS_URL monitored. They begin
// at started, or at the start of the run or of the runner that this session continues. The server's samples of a
// backend also replace soak's samples of the target, unless a check depends on soak's samples. Prometheus samples less
// often, counts no requests, and may monitor a different service.
func (s *session) queryPrometheus(graceful, force context.Context, started time.Time) {
	if s.replacedRunner.startUS > 0 {
		started = time.UnixMicro(s.replacedRunner.startUS)
	}
	started = cmp.Or(s.runStart, started)
	address := os.Getenv("PROMETHEUS_URL")
	if address == "" {
		return
	}
	ctx, cancel := storageContext(graceful, force, prometheusTimeout)
	defer cancel()
	s.queryMachines(ctx, address, started)
	localSamples, localErr := resources.Read(s.dir.Path(results.ResourcesFile))
	if !s.Suite.Sampling.Optional && slices.ContainsFunc(localSamples, func(sample resources.Sample) bool { return sample.BackendRSS > 0 || sample.Gauge != nil }) {
		return
	}
	samples, err := resources.FromPrometheus(ctx, address, started, time.Now())
	source := resources.Redact(address)
	if err == nil {
		if localErr == nil && resources.CopyHost(samples, localSamples) {
			source += " (it has no metrics of the host, so soak sampled the host)"
		}
		err = s.dir.Write(results.ResourcesFile, func(w io.Writer) error {
			out := json.NewEncoder(w)
			for _, sample := range samples {
				if err := out.Encode(sample); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err != nil {
		s.record.Warnings = append(s.record.Warnings, err.Error()+", so soak's own samples are used")
		return
	}
	s.record.ResourcesFrom = source
}

// queryMachines stores the records of all machines that the Prometheus server at address monitored, including the
// target's machine.
func (s *session) queryMachines(ctx context.Context, address string, started time.Time) {
	machines, err := resources.MachinesFromPrometheus(ctx, address, started, time.Now(), s.Plan.LateLimit())
	if err == nil && len(machines) > 0 {
		err = s.dir.WriteJSON(results.MachinesFile, machines)
	}
	if err != nil {
		s.record.Warnings = append(s.record.Warnings, err.Error()+", so only the machines of the runners have counters")
	}
}

// failedWrites returns a sentence about failed writes to Prometheus in the logs of the runners; "" if no write failed.
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

const writeCheckInterval = 5 * time.Second

// warnOfFailedWrites warns once if metrics do not reach Prometheus, while there is time to fix the cause.
func warnOfFailedWrites(ctx context.Context, dir results.Dir) {
	tick := time.NewTicker(writeCheckInterval)
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
