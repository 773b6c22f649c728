// Package fault describes the faults that the backend injects: their grammar, the streams and noops that they affect,
// and their effects so far. It does no I/O; the backend applies the faults.
package fault

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/backend/answer"
)

// A Kind is the name of a kind of fault in the grammar.
type Kind string

// The kinds of faults: first the kinds at a noop, then the kinds at a connect. The ledger counts an affected noop as
// sent, unless the fault is Reset or Die.
const (
	Drop      Kind = "drop"      // the noop is not written
	Duplicate Kind = "duplicate" // the noop is written twice
	Reorder   Kind = "reorder"   // the noop is written after the next event
	Corrupt   Kind = "corrupt"   // the data of the noop is "x" instead of "0"
	Delay     Kind = "delay"     // nothing is written for a time; the noop and all later events wait
	Truncate  Kind = "truncate"  // half of the noop is written, then the connection is closed
	Stall     Kind = "stall"     // the noop and all later events are not written
	Reset     Kind = "reset"     // the connection is reset
	Die       Kind = "die"       // the process kills itself

	Refuse      Kind = "refuse"       // the response has status 503
	WrongType   Kind = "wrong-type"   // the response has status 200 and type text/html
	SlowHeaders Kind = "slow-headers" // the response headers are delayed
)

// kinds states for each kind whether it applies to connects, and whether its count is a number of connections.
var kinds = map[Kind]struct{ atConnect, perConnection bool }{
	Drop: {}, Duplicate: {}, Reorder: {}, Corrupt: {}, Delay: {}, Die: {},
	Truncate: {perConnection: true}, Stall: {perConnection: true}, Reset: {perConnection: true},
	Refuse: {true, true}, WrongType: {true, true}, SlowHeaders: {true, true},
}

// Defaults and limits of the grammar.
const (
	defaultNoop        = 3
	defaultSlowHeaders = 30 * time.Second
	maxFaults          = 64
	maxCount           = 10000
	maxWait            = 24 * time.Hour
	maxNoop            = 1<<62 - 1
)

// Help describes the grammar to users.
const Help = `Faults: kind[=value][:key=value[,key=value]...], several separated by ";"
  at a noop:    drop duplicate reorder corrupt delay=2s truncate stall reset die
  at a connect: refuse wrong-type slow-headers[=30s]
  keys:         id=ID      only this client id (default: the first affected id; any id for
                           truncate, stall, reset and faults at a connect)
                noop=N     the first noop numbered N or higher (default 3; kinds at a noop only)
                count=N    number of noops or connections (default 1)
  die is repeated after each restart while BACKEND_FAULT names it
  example:      drop:id=a-7,noop=5;delay=2s:count=3
`

// A Fault is one requested fault.
type Fault struct {
	Kind  Kind          `json:"kind"`
	Wait  time.Duration `json:"-"`              // for Delay and SlowHeaders
	ID    string        `json:"id,omitempty"`   // "": any id if Count counts connections, otherwise the first affected id
	Noop  uint64        `json:"noop,omitempty"` // lowest number of an affected noop; 0 for kinds at a connect
	Count int           `json:"count"`          // number of noops, or of connections
}

// AtConnect reports whether the fault applies to a connect.
func (f Fault) AtConnect() bool { return kinds[f.Kind].atConnect }

// String returns the fault in the grammar, with explicit defaults.
func (f Fault) String() string {
	kind, keys := string(f.Kind), []string{}
	if f.Wait > 0 {
		kind += "=" + f.Wait.String()
	}
	if f.ID != "" {
		keys = append(keys, "id="+f.ID)
	}
	if !f.AtConnect() {
		keys = append(keys, fmt.Sprintf("noop=%d", f.Noop))
	}
	return kind + ":" + strings.Join(append(keys, fmt.Sprintf("count=%d", f.Count)), ",")
}

// Parse parses faults separated by ";". Blank text contains no faults. Each error states a rule or a remedy.
func Parse(text string) ([]Fault, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var faults []Fault
	for part := range strings.SplitSeq(text, ";") {
		part = strings.TrimSpace(part)
		f, err := parseOne(part)
		if err != nil {
			return nil, fmt.Errorf("fault %q: %w", shorten(part), err)
		}
		if faults = append(faults, f); len(faults) > maxFaults {
			return nil, fmt.Errorf("more than %d faults; remove some, or use count", maxFaults)
		}
	}
	return faults, nil
}

func parseOne(text string) (Fault, error) {
	head, keys, hasKeys := strings.Cut(text, ":")
	name, value, hasValue := strings.Cut(head, "=")
	f := Fault{Kind: Kind(name), Count: 1}
	if err := f.setValue(value, hasValue); err != nil {
		return Fault{}, err
	}
	if !f.AtConnect() {
		f.Noop = defaultNoop
	}
	if !hasKeys {
		return f, nil
	}
	names := map[string]bool{}
	for pair := range strings.SplitSeq(keys, ",") {
		key, value, _ := strings.Cut(pair, "=")
		if names[key] {
			return Fault{}, fmt.Errorf("the key %s occurs twice; remove one", key)
		}
		names[key] = true
		if err := f.setKey(key, value); err != nil {
			return Fault{}, err
		}
	}
	return f, nil
}

func (f *Fault) setValue(value string, hasValue bool) error {
	_, known := kinds[f.Kind]
	switch {
	case !known:
		return errors.New("unknown kind; choose drop, duplicate, reorder, corrupt, delay=2s, truncate, stall, reset, refuse, wrong-type, slow-headers or die")
	case f.Kind == SlowHeaders && !hasValue:
		f.Wait = defaultSlowHeaders
		return nil
	case f.Kind == Delay && !hasValue:
		return errors.New("delay needs a time, for example delay=2s")
	case f.Kind != SlowHeaders && f.Kind != Delay && hasValue:
		return fmt.Errorf("%s accepts no value; remove it", f.Kind)
	case !hasValue:
		return nil
	}
	wait, err := time.ParseDuration(value)
	if err != nil || wait <= 0 || wait > maxWait {
		return fmt.Errorf("the time must be over 0 and at most %v, for example %s=2s", maxWait, f.Kind)
	}
	f.Wait = wait
	return nil
}

func (f *Fault) setKey(key, value string) error {
	switch key {
	case "id":
		if !answer.ValidName(value) {
			return errors.New("id must have " + answer.NameRule)
		}
		f.ID = value
	case "noop":
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil || n == 0 || n > maxNoop {
			return fmt.Errorf("noop must be a whole number from 1 to %d", uint64(maxNoop))
		}
		if f.AtConnect() {
			return fmt.Errorf("%s applies to connects, not to noops; remove the key noop", f.Kind)
		}
		f.Noop = n
	case "count":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > maxCount {
			return fmt.Errorf("count must be a whole number from 1 to %d", maxCount)
		}
		f.Count = n
	default:
		return fmt.Errorf("unknown key %q; use id, noop or count", shorten(key))
	}
	return nil
}

func shorten(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}

// An Effect is the record of one noop or connect to which a fault was applied.
type Effect struct {
	ID     string `json:"id"`
	Number uint64 `json:"number,omitempty"` // number of the noop; 0 at a connect
	At     int64  `json:"at_unix_us"`
}

// An ArmedFault is a fault with its effects so far, in the format of GET /fault.
type ArmedFault struct {
	Text string `json:"fault"` // in the grammar
	Fault
	Remaining int      `json:"remaining"`
	WaitS     float64  `json:"wait_s,omitempty"` // Wait in seconds
	Effects   []Effect `json:"fired"`
	lastID    string   // last affected id; "": none
}

// A Set holds the faults of a backend. The zero value is empty. A Set is not safe for concurrent use.
type Set struct {
	faults      []*ArmedFault
	activeCount int // number of faults with remaining effects
}

// Add arms faults. If the set already has 256 or more, Add first removes the faults without remaining effects.
func (s *Set) Add(faults ...Fault) {
	for _, f := range faults {
		if len(s.faults) >= 4*maxFaults {
			s.faults = slices.DeleteFunc(s.faults, func(a *ArmedFault) bool { return a.Remaining == 0 })
		}
		s.faults = append(s.faults, &ArmedFault{Text: f.String(), Fault: f, Remaining: f.Count, WaitS: f.Wait.Seconds(), Effects: []Effect{}})
		s.activeCount++
	}
}

// Clear removes all faults.
func (s *Set) Clear() { *s = Set{} }

// Empty reports whether no fault has remaining effects.
func (s *Set) Empty() bool { return s.activeCount == 0 }

// AtNoop returns the fault for a noop of an id and records the effect, or returns nil. Earlier faults take precedence.
// now is in microseconds since 1970.
func (s *Set) AtNoop(id string, number uint64, now int64) *Fault {
	for _, a := range s.faults {
		if a.Remaining > 0 && !a.AtConnect() && number >= a.Noop && a.matches(id) {
			return s.record(a, id, number, now)
		}
	}
	return nil
}

// AtConnect returns the fault for a connect of an id, like AtNoop for a noop.
func (s *Set) AtConnect(id string, now int64) *Fault {
	for _, a := range s.faults {
		if a.Remaining > 0 && a.AtConnect() && a.matches(id) {
			return s.record(a, id, 0, now)
		}
	}
	return nil
}

// matches reports whether the fault applies to an id. A fault without an id applies to all ids if it counts
// connections. If it counts noops, it applies only to the first id that it affects.
func (a *ArmedFault) matches(id string) bool {
	switch {
	case a.ID != "":
		return a.ID == id
	case a.lastID != "" && !kinds[a.Kind].perConnection:
		return a.lastID == id
	}
	return true
}

func (s *Set) record(a *ArmedFault, id string, number uint64, now int64) *Fault {
	a.lastID = id
	a.Effects = append(a.Effects, Effect{ID: id, Number: number, At: now})
	if a.Remaining--; a.Remaining == 0 {
		s.activeCount--
	}
	return &a.Fault
}

// Status returns copies of all faults in the order of Add.
func (s *Set) Status() []ArmedFault {
	list := make([]ArmedFault, len(s.faults))
	for i, a := range s.faults {
		list[i] = *a
		list[i].Effects = slices.Clone(a.Effects)
	}
	return list
}
