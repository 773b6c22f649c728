package verdict

import (
	"errors"
	"time"

	"github.com/sse-soak/sse-soak/internal/shard"
)

// A ModelEntry is one request in the ledger of the numbered model. A gateway may repeat a request.
type ModelEntry struct {
	ID             string `json:"id"`
	Sent           int64  `json:"sent"`           // chunks
	DisconnectedUS int64  `json:"left,omitempty"` // when the model noticed that its client had disconnected, in microseconds since 1970; 0: it did not
	StartedUS      int64  `json:"started"`        // in microseconds since 1970
}

// A ModelLedger has the requests of the numbered model by id; nil if it was not read.
type ModelLedger map[string][]ModelEntry

// ReadModelLedger adds the entries of an NDJSON file to a ledger, which may be nil. A missing file adds nothing.
func ReadModelLedger(to ModelLedger, path string) (ModelLedger, error) {
	l := to
	if l == nil {
		l = ModelLedger{}
	}
	exists, err := readLedger(path, "read the model's ledger", func(e ModelEntry) error {
		if e.Sent < 0 || e.Sent > maxSent || e.DisconnectedUS < 0 {
			return errors.New("counts or times are out of range")
		}
		l[e.ID] = append(l[e.ID], e)
		return nil
	})
	if exists || err != nil {
		return l, err
	}
	return to, nil
}

// A Cancellation shows whether the service cancelled requests at the numbered model after clients had disconnected.
type Cancellation struct {
	Checked   int64 `json:"checked"`   // abandoned responses whose requests are in the ledger of the model
	Cancelled int64 `json:"cancelled"` // the part of these that was cancelled at the model before the run had ended
	// Delay is the time from the disconnect of the client until the model noticed it, in milliseconds.
	Delay ResponseQuantiles `json:"after_ms"`
	// UnreceivedChunks counts the chunks that the model sent and no client received.
	UnreceivedChunks int64 `json:"unreceived_chunks"`
}

// cancellation joins the abandoned responses with the ledger of the model; nil if the ledger has none of them.
func cancellation(abandoned []shard.AbandonedResponse, l ModelLedger) *Cancellation {
	c, delays := Cancellation{}, shard.NewHistogram()
	for _, response := range abandoned {
		entries := l[response.ID]
		if len(entries) == 0 {
			continue
		}
		c.Checked++
		sent, disconnected := int64(0), int64(0) // if a gateway repeated the request: the sum, and the last cancellation
		for _, e := range entries {
			sent += e.Sent
			disconnected = max(disconnected, e.DisconnectedUS)
		}
		c.UnreceivedChunks += max(sent-response.Chunks, 0)
		if disconnected > 0 {
			c.Cancelled++
			delays.Record(time.Duration(max(disconnected-response.AtUS, 0)) * time.Microsecond)
		}
	}
	if c.Checked == 0 {
		return nil
	}
	c.Delay = responseQuantiles(delays)
	return &c
}
