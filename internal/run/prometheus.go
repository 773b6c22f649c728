package run

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/results"
)

// prometheusWithin bounds how long PROMETHEUS_URL may take: the target is asked for its ledger after it.
const prometheusWithin = 15 * time.Second

// askPrometheus puts what PROMETHEUS_URL knows of the run into the file of our own samples, which stay where it does not
// answer or does not know the backend. They stay, too, where a check rests on them: Prometheus samples less often,
// counts no requests, and may watch another service than the one that was started here.
func (s *session) askPrometheus(graceful, force context.Context, started time.Time) {
	address := os.Getenv("PROMETHEUS_URL")
	if address == "" {
		return
	}
	ctx, cancel := waiting(graceful, force, prometheusWithin)
	defer cancel()
	s.askMachines(ctx, address, started)
	ownSamples, ownErr := resources.Read(s.dir.Path(results.ResourcesFile))
	if !s.Suite.Sampling.Optional && slices.ContainsFunc(ownSamples, func(sample resources.Sample) bool { return sample.BackendRSS > 0 || sample.Gauge != nil }) {
		return
	}
	samples, err := resources.FromPrometheus(ctx, address, started, time.Now())
	from := resources.Redacted(address)
	if err == nil {
		if ownErr == nil && resources.WithHost(samples, ownSamples) {
			from += " (it has no metrics of the host; soak sampled those)"
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
		s.record.Warnings = append(s.record.Warnings, err.Error()+"; soak's own samples are used")
		return
	}
	s.record.ResourcesFrom = from
}

// askMachines keeps what PROMETHEUS_URL saw of the machines of the run, those of the target among them: their counters, and
// what AWS announced for them. A Prometheus that watches none leaves no file.
func (s *session) askMachines(ctx context.Context, address string, started time.Time) {
	found, err := resources.MachinesFromPrometheus(ctx, address, started, time.Now(), s.Plan.Late())
	if err == nil && len(found) > 0 {
		err = s.dir.WriteJSON(results.MachinesFile, found)
	}
	if err != nil {
		s.record.Warnings = append(s.record.Warnings, err.Error()+"; only the runners' counters of the machines are known")
	}
}
