package soak

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/grafana/sobek"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/k6/sse"
)

// A jsLedger is the Ledger of a script. Only its source writes to it, so Set and Delete return false. As a Go value
// it is the Ledger that `new EventSource(url, {ledger})` accepts.
type jsLedger struct {
	observer
	rt *sobek.Runtime
}

var (
	_ sobek.DynamicObject = (*jsLedger)(nil)
	_ sse.Ledger          = (*jsLedger)(nil)
)

// ledgerValues lists the enumerable properties of a Ledger, by name. soak.d.ts documents them.
var ledgerValues = valuesOfLedger()

func valuesOfLedger() map[string]func(*ledger.Record) any {
	values := map[string]func(*ledger.Record) any{
		"id":    func(r *ledger.Record) any { return r.ID },
		"state": func(r *ledger.Record) any { return string(r.State) },
	}
	for i, n := range (ledger.Totals{}).Each() {
		values[n.Name] = func(r *ledger.Record) any { return r.Totals().Each()[i].Count }
	}
	return values
}

// String returns id, state and all counts except the late messages, on one line.
func (l *jsLedger) String() string {
	r := l.ledger.Sums()
	var counts []string
	for _, n := range r.Totals().Each() {
		if n.Name != "late" { // late messages were received, and are not faults by default
			counts = append(counts, fmt.Sprintf("%s %d", n.Name, n.Count))
		}
	}
	return fmt.Sprintf("%s %s: %s", r.ID, r.State, strings.Join(counts, ", "))
}

// Callbacks implements sse.Ledger. It throws for a second source, because two streams must not write at the same time.
func (l *jsLedger) Callbacks() sseclient.Callbacks {
	if l.hasSource {
		panic(l.rt.NewTypeError("EventSource: option ledger: this Ledger already has a source; create a Ledger for each source"))
	}
	l.hasSource = true
	return l.observer.Callbacks()
}

func (l *jsLedger) Get(key string) sobek.Value {
	if value, ok := ledgerValues[key]; ok {
		r := l.ledger.Sums()
		return l.rt.ToValue(value(&r))
	}
	if key == "toString" {
		return l.rt.ToValue(l.String)
	}
	return nil
}

func (l *jsLedger) Set(string, sobek.Value) bool { return false }

func (l *jsLedger) Has(key string) bool { return ledgerValues[key] != nil || key == "toString" }

func (l *jsLedger) Delete(string) bool { return false }

func (l *jsLedger) Keys() []string { return slices.Sorted(maps.Keys(ledgerValues)) }
