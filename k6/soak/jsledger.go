package soak

import (
	"fmt"
	"time"

	"github.com/grafana/sobek"

	"github.com/sse-soak/sse-soak/internal/ledger"
)

// jsLedger is a Ledger as a script sees it: it can be read, but only the connection writes
// it. As a Go value it is the Observer that `new EventSource(url, {ledger})` takes.
type jsLedger struct {
	book
	rt *sobek.Runtime
}

var _ sobek.DynamicObject = (*jsLedger)(nil)

// ledgerFields are the properties of a Ledger, documented in load-tests/types/index.d.ts.
var ledgerFields = map[string]func(ledger.Record) any{
	"id":         func(r ledger.Record) any { return r.ID },
	"state":      func(r ledger.Record) any { return string(r.State) },
	"reason":     func(r ledger.Record) any { return r.Reason },
	"streams":    func(r ledger.Record) any { return r.Streams },
	"connectMs":  func(r ledger.Record) any { return milliseconds(r.Connect) },
	"heldMs":     func(r ledger.Record) any { return milliseconds(r.Held) },
	"expected":   func(r ledger.Record) any { return r.Expected() },
	"received":   func(r ledger.Record) any { return r.Received },
	"missed":     func(r ledger.Record) any { return r.Missed() },
	"duplicated": func(r ledger.Record) any { return r.Duplicated },
	"reordered":  func(r ledger.Record) any { return r.Reordered },
	"corrupted":  func(r ledger.Record) any { return r.Corrupted },
	"late":       func(r ledger.Record) any { return r.Late },
	"faultless":  func(r ledger.Record) any { return r.Faultless() },
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Get reads a property.
func (l *jsLedger) Get(key string) sobek.Value {
	if field, ok := ledgerFields[key]; ok {
		return l.rt.ToValue(field(l.ledger.Sums()))
	}
	switch key {
	case "undecidedMs":
		return l.rt.ToValue(milliseconds(l.ledger.Undecided(l.recorder.instant(time.Now()))))
	case "silentMs":
		return l.rt.ToValue(l.silentMs(time.Now()))
	case "askToEnd":
		return l.rt.ToValue(func() { l.ledger.AskedToEnd(l.recorder.instant(time.Now())) })
	case "toString":
		return l.rt.ToValue(func() string { return l.describe() })
	}
	return nil
}

// silentMs is for how long nothing has come on an open stream. The ledger itself finds a noop missed only
// when another one comes, or when the stream ends.
func (l *jsLedger) silentMs(now time.Time) float64 {
	r := l.ledger.Sums()
	if r.State != ledger.Open {
		return 0
	}
	return max(milliseconds(l.recorder.instant(now)-r.LastAt), 0)
}

func (l *jsLedger) describe() string {
	r := l.ledger.Sums()
	return fmt.Sprintf("%s %s: expected %d, received %d, missed %d, duplicated %d, reordered %d, corrupted %d",
		r.ID, r.State, r.Expected(), r.Received, r.Missed(), r.Duplicated, r.Reordered, r.Corrupted)
}

// Set refuses: a script cannot change a ledger.
func (l *jsLedger) Set(string, sobek.Value) bool { return false }

// Has says which properties there are.
func (l *jsLedger) Has(key string) bool {
	_, ok := ledgerFields[key]
	return ok || key == "silentMs" || key == "undecidedMs" || key == "askToEnd" || key == "toString"
}

// Delete refuses.
func (l *jsLedger) Delete(string) bool { return false }

// Keys lists the properties that hold values.
func (l *jsLedger) Keys() []string {
	keys := make([]string, 0, len(ledgerFields))
	for k := range ledgerFields {
		keys = append(keys, k)
	}
	return append(keys, "silentMs", "undecidedMs")
}
