package run

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/run/target"
)

// saveLedger stores the target's own ledger of this run's streams. Without a ledger, the verdict is based on message
// numbers and times. A backend that soak started always has a ledger, so a missing one makes the run invalid.
func (s *session) saveLedger(ctx context.Context) {
	var found bool
	var readErr error
	name := results.LedgerName(s.runnerNumber)
	err := s.dir.Write(name, func(w io.Writer) error {
		found, readErr = s.targets.Ledger(ctx, s.Plan.Prefix, w)
		return nil
	})
	if err == nil && !found {
		err = os.Remove(s.dir.Path(name))
	}
	switch {
	case err != nil:
		s.record.Problems = append(s.record.Problems, err.Error())
	case !found && s.managesTarget:
		s.record.Problems = append(s.record.Problems, fmt.Sprintf("the backend did not return its ledger, so the last noops cannot be checked (%v)", cmp.Or(readErr, errNoLedger)))
	case readErr != nil:
		s.record.Warnings = append(s.record.Warnings, readErr.Error())
	}
}

var errNoLedger = errors.New("the response has no ledger, or there was no response")

// cancelTimeout is how long soak waits, after the runners have ended, for the model to detect that clients have
// disconnected.
const cancelTimeout = 5 * time.Second

// saveModelLedger stores the ledger of the numbered model if the run abandons requests. The model is the target or, if
// the target is a gateway, the service at MODEL_URL. saveModelLedger waits up to cancelTimeout for the model to record
// all cancellations.
func (s *session) saveModelLedger(ctx context.Context) {
	modelURL := s.setting("MODEL_URL", "")
	if s.setting("ABANDON", "0") == "0" {
		return
	}
	model := s.targets[0]
	if modelURL != "" {
		model = target.Remote(modelURL, "")
	}
	ctx, cancel := context.WithTimeout(ctx, 2*cancelTimeout)
	defer cancel()
	var text bytes.Buffer
	for deadline := time.Now().Add(cancelTimeout); ; {
		text.Reset()
		found, err := model.ModelLedger(ctx, s.Plan.Marker+"-", &text)
		switch {
		case !found && s.gauge() != "": // another model, with a gauge
			return
		case err != nil || !found && modelURL != "":
			s.warn(fmt.Sprintf("read the ledger of the model at %s: %v, so the times at which the model cancelled abandoned requests are unknown", model.URL, cmp.Or(err, errNoLedger)))
			return
		case !found || !bytes.HasPrefix(text.Bytes(), []byte("{")): // another service
			return
		}
		if !bytes.Contains(text.Bytes(), []byte(`"outcome":"open"`)) || time.Now().After(deadline) {
			break
		}
		select {
		case <-time.After(cancelTimeout / 10):
		case <-ctx.Done():
		}
	}
	if err := s.dir.Write(results.LedgerName(s.runnerNumber), func(w io.Writer) error {
		_, err := text.WriteTo(w)
		return err
	}); err != nil {
		s.warn("save the ledger of the model: " + err.Error())
	}
}
