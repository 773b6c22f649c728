package soak

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/grafana/sobek"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/k6/sse"
)

// jsLedger is a Ledger as a script sees it: it can be read, but only the connection writes
// it. As a Go value it is the Observer that `new EventSource(url, {ledger})` takes.
type jsLedger struct {
	observer
	rt *sobek.Runtime
}

var _ sobek.DynamicObject = (*jsLedger)(nil)

func (l *jsLedger) unwrap() *observer { return &l.observer }

// resumingLedger is a jsLedger of a service whose streams resume from an id that is not in the field id.
type resumingLedger struct{ jsLedger }

var _ sse.ResumeObserver = (*resumingLedger)(nil)

// LastEventID is the id of the last message.
func (l *resumingLedger) LastEventID() string { return string(l.rareSights().last) }

// The properties of a Ledger, documented in load-tests/types/soak.d.ts: ledgerValues by their names, and
// functions, which no script can list.
var (
	ledgerValues    = valuesOfLedger()
	ledgerFunctions = map[string]func(l *jsLedger) any{
		"askToEnd": func(l *jsLedger) any { return func() { l.ledger.CloseRequested(l.now()) } },
		"toString": func(l *jsLedger) any { return l.String },
	}
)

func valuesOfLedger() map[string]func(*jsLedger, *ledger.Record) any {
	values := map[string]func(*jsLedger, *ledger.Record) any{
		"id":          func(_ *jsLedger, r *ledger.Record) any { return r.ID },
		"state":       func(_ *jsLedger, r *ledger.Record) any { return string(r.State) },
		"reason":      func(_ *jsLedger, r *ledger.Record) any { return r.Reason },
		"streams":     func(_ *jsLedger, r *ledger.Record) any { return r.Streams },
		"connectMs":   func(_ *jsLedger, r *ledger.Record) any { return milliseconds(r.Connect) },
		"heldMs":      func(_ *jsLedger, r *ledger.Record) any { return milliseconds(r.Held) },
		"faultless":   func(l *jsLedger, r *ledger.Record) any { return l.faultless(r) },
		"undecidedMs": func(l *jsLedger, _ *ledger.Record) any { return milliseconds(l.ledger.Undecided(l.now())) },
		"silentMs":    func(l *jsLedger, r *ledger.Record) any { return silentMs(r, l.now()) },
	}
	for i, n := range (ledger.Totals{}).Each() {
		values[n.Name] = func(_ *jsLedger, r *ledger.Record) any { return r.Totals().Each()[i].Count }
	}
	return values
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// silentMs is for how long nothing has come on an open stream. The ledger itself finds a noop missed only
// when another one comes, or when the stream ends.
func silentMs(r *ledger.Record, now ledger.Instant) float64 {
	if r.State != ledger.Open {
		return 0
	}
	return max(milliseconds(now-r.LastAt), 0)
}

// String is all counts in one line.
func (l *jsLedger) String() string {
	r := l.ledger.Sums()
	var counts []string
	for _, n := range r.Totals().Each() {
		if n.Name != "late" { // which is no fault, and has a limit of its own
			counts = append(counts, fmt.Sprintf("%s %d", n.Name, n.Count))
		}
	}
	return fmt.Sprintf("%s %s: %s", r.ID, r.State, strings.Join(counts, ", "))
}

// Get reads a property.
func (l *jsLedger) Get(key string) sobek.Value {
	if value, ok := ledgerValues[key]; ok {
		r := l.ledger.Sums()
		return l.rt.ToValue(value(l, &r))
	}
	if function, ok := ledgerFunctions[key]; ok {
		return l.rt.ToValue(function(l))
	}
	return nil
}

// Set refuses: a script cannot change a ledger.
func (l *jsLedger) Set(string, sobek.Value) bool { return false }

// Has says which properties there are.
func (l *jsLedger) Has(key string) bool {
	return ledgerValues[key] != nil || ledgerFunctions[key] != nil
}

// Delete refuses.
func (l *jsLedger) Delete(string) bool { return false }

// Keys lists the properties that hold values.
func (l *jsLedger) Keys() []string { return slices.Collect(maps.Keys(ledgerValues)) }
