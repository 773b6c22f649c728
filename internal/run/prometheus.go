package run

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"time"

	"github.com/sse-soak/sse-soak/internal/resources"
	"github.com/sse-soak/sse-soak/internal/results"
)

// askPrometheus puts what PROMETHEUS_URL knows of the run into the file of our own samples,
// which stay where it does not answer or does not know the backend.
func (s *session) askPrometheus(ctx context.Context, started time.Time) {
	address := os.Getenv("PROMETHEUS_URL")
	if address == "" {
		return
	}
	samples, err := resources.FromPrometheus(ctx, address, started, time.Now())
	from := resources.Redacted(address)
	if err == nil {
		if own, readErr := resources.Read(s.dir.Path(results.ResourcesFile)); readErr == nil && resources.WithHost(samples, own) {
			from += " (it watches no host: the host is by soak itself)"
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
		s.seen.Warnings = append(s.seen.Warnings, err.Error()+"; the resources are those that soak sampled itself")
		return
	}
	s.seen.ResourcesFrom = from
}
