// Package plan is what a soak promises to do: one record that the command line makes, the
// scripts fulfil, the shards repeat and the verdict is held against.
package plan

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// DisconnectLead is how many seconds before the end of the run each connection asks the
// server to end its stream, so that the end is seen within the run.
const DisconnectLead = 5

// DefaultMaxOutage holds where nothing is said, also in plans that were written before there was a limit.
const DefaultMaxOutage = 30 * time.Second

// A Plan is one soak. The zero value is not valid; see Check. The tag env is the variable by which
// a runner is told a field, and the name by which a merge compares it (settings.go).
type Plan struct {
	TestID           string  `json:"testid" env:"TESTID"`
	RunID            string  `json:"run_id,omitempty" env:"SOAK_RUN_ID"` // drawn by `soak run` for each run; "": k6 alone
	Suite            string  `json:"suite,omitempty" env:"SOAK_SUITE"`   // "": the soak. Another one says itself what it does
	Connections      int     `json:"connections" env:"CONNECTIONS"`
	Seconds          int     `json:"seconds" env:"SECONDS"` // of the whole run; a stream is held DisconnectLead less
	NoopInterval     float64 `json:"noop_interval_s" env:"NOOP_INTERVAL"`
	Runners          int     `json:"runners" env:"RUNNERS"`
	ConnectionsPerVU int     `json:"connections_per_vu" env:"CONNECTIONS_PER_VU"`
	BackendURL       string  `json:"backend_url" env:"BACKEND_URL"` // or several with commas between; see BackendOf
	Prefix           string  `json:"prefix" env:"PREFIX"`           // of the device ids: PREFIX0 … PREFIX(connections−1)
	LateMS           int     `json:"late_ms" env:"LATE_MS"`
	MaxLate          int     `json:"max_late" env:"MAX_LATE"` // how many late noops are allowed; negative: any
	Reconnect        bool    `json:"reconnect" env:"RECONNECT"`
	EndTimeoutS      float64 `json:"end_timeout_s" env:"END_TIMEOUT"` // how long a stream may take to end; 0: see EndTimeout
	MaxHidden        int     `json:"max_hidden" env:"MAX_HIDDEN"`     // noops that may have gone missing unnoticed; -1: 0, or any by the clock alone
	MaxOutageS       float64 `json:"max_outage_s" env:"MAX_OUTAGE"`   // with Reconnect the longest time without a stream; -1: any
}

// Default is the original test: 1200 connections for an hour, one noop every 15 s.
func Default() Plan {
	return Plan{
		Connections: 1200, Seconds: 3600, NoopInterval: 15, Runners: 2,
		ConnectionsPerVU: 1, LateMS: 1000, MaxLate: -1,
		MaxOutageS: DefaultMaxOutage.Seconds(), MaxHidden: -1,
	}
}

// Bounds that no soak comes near; within them no sum and no duration overflows.
const (
	MaxConnections = 10_000_000
	maxSeconds     = 366 * 24 * 3600
	minInterval    = time.Millisecond
)

var idPart = regexp.MustCompile(`^[A-Za-z0-9._-]*$`)

// Check says in one sentence what is wrong with the plan, nil if nothing is.
func (p *Plan) Check() error {
	if p.Suite != "" {
		return p.checkCommon()
	}
	switch {
	case p.Connections < 1:
		return fmt.Errorf("CONNECTIONS is %d: a soak needs at least 1 connection", p.Connections)
	case p.Connections > MaxConnections:
		return fmt.Errorf("CONNECTIONS is %d: more than %d are not to be held from one plan", p.Connections, MaxConnections)
	case p.Seconds > maxSeconds:
		return fmt.Errorf("SECONDS is %d: a run of over a year is not to be measured", p.Seconds)
	case p.Seconds <= DisconnectLead:
		return fmt.Errorf("SECONDS is %d: it must be over %d, because streams are ended %d s before the end",
			p.Seconds, DisconnectLead, DisconnectLead)
	case !(p.NoopInterval > 0):
		return fmt.Errorf("NOOP_INTERVAL is %v: it must be over 0 seconds", p.NoopInterval)
	case p.NoopInterval < minInterval.Seconds():
		return fmt.Errorf("NOOP_INTERVAL is %v: it must be at least %v", p.NoopInterval, minInterval)
	case float64(p.Seconds-DisconnectLead) < 2*p.NoopInterval:
		return fmt.Errorf("SECONDS is %d and NOOP_INTERVAL %v: a stream held for %d s sees less than two noops; lengthen the run or shorten the interval",
			p.Seconds, p.NoopInterval, p.Seconds-DisconnectLead)
	case p.ConnectionsPerVU < 1:
		return fmt.Errorf("CONNECTIONS_PER_VU is %d: it must be at least 1", p.ConnectionsPerVU)
	case p.Runners > 0 && p.Iterations() < p.Runners:
		return fmt.Errorf("RUNNERS is %d, but there are only %d virtual users to share out; lower RUNNERS or CONNECTIONS_PER_VU",
			p.Runners, p.Iterations())
	case p.LateMS < 1:
		return fmt.Errorf("LATE_MS is %d: it must be at least 1 ms", p.LateMS)
	case p.LateMS > maxSeconds*1000:
		return fmt.Errorf("LATE_MS is %d: no noop can be over a year late", p.LateMS)
	case !(p.EndTimeoutS >= 0 && p.EndTimeoutS <= maxSeconds):
		return fmt.Errorf("END_TIMEOUT is %v: it must be a number of seconds over 0, or 0 for the default", p.EndTimeoutS)
	case !(p.MaxOutageS >= 0 && p.MaxOutageS <= maxSeconds || p.MaxOutageS == -1):
		return fmt.Errorf("MAX_OUTAGE is %v: write the longest time without a stream in seconds, up to a year, or -1 for any", p.MaxOutageS)
	case !idPart.MatchString(p.Prefix):
		return fmt.Errorf("PREFIX is %q: device ids may hold only letters, digits, '.', '_' and '-'", p.Prefix)
	case len(p.Prefix)+len(strconv.Itoa(p.Connections)) > 64:
		return fmt.Errorf("PREFIX is %d characters long: with the number behind it a device id may have 64", len(p.Prefix))
	}
	return p.checkCommon()
}

// checkCommon is what holds for a run of any kind.
func (p *Plan) checkCommon() error {
	switch {
	case p.Runners < 1:
		return fmt.Errorf("RUNNERS is %d: it takes at least 1", p.Runners)
	case !idPart.MatchString(p.TestID) || p.TestID == "." || p.TestID == "..":
		return fmt.Errorf("TESTID is %q: it names a folder and may hold only letters, digits, '.', '_' and '-'", p.TestID)
	}
	return p.checkURL()
}

func (p *Plan) checkURL() error {
	if p.BackendURL == "" {
		return nil
	}
	all := p.BackendURLs()
	if len(all) > p.Runners {
		return fmt.Errorf("BACKEND_URL names %d services for %d runners: each runner goes to one, so raise RUNNERS to %d", len(all), p.Runners, len(all))
	}
	for _, one := range all {
		if _, err := NormalURL("BACKEND_URL", one); err != nil {
			return err
		}
	}
	return nil
}

// BackendURLs are the services in their normal form; one that has none stays as it is, for Check.
func (p *Plan) BackendURLs() []string {
	all := strings.Split(p.BackendURL, ",")
	for i, one := range all {
		if normal, err := NormalURL("BACKEND_URL", one); err == nil {
			all[i] = normal
		}
	}
	return all
}

// BackendOf is the service that this runner (from 1) soaks: each runner the next one of them.
func (p *Plan) BackendOf(runner int) string {
	all := p.BackendURLs()
	return all[max(runner-1, 0)%len(all)]
}

// PerRunner is the most connections that one runner holds.
func (p *Plan) PerRunner() int { return (p.Connections-1)/p.Runners + 1 }

// PerBackend is the most connections that one of so many services holds.
func (p *Plan) PerBackend(services int) int {
	return min(((p.Runners-1)/services+1)*p.PerRunner(), p.Connections)
}

// Density is how many streams a virtual user of this plan best holds. A virtual user takes
// twenty times the memory of a stream, so they are shared; but each runner gets several, so
// that its cores are used and one that fails takes few streams with it; and not too many, since
// each has requests of its own under way when it ends its streams.
func (p *Plan) Density() int {
	const most, fewestUsers, mostUsers = 50, 8, 100
	perRunner := p.Connections / max(p.Runners, 1)
	return max(min(perRunner/fewestUsers, most), perRunner/mostUsers, 1)
}

// Iterations is how many virtual users hold the connections.
func (p *Plan) Iterations() int {
	return (p.Connections-1)/p.ConnectionsPerVU + 1
}

// Interval is the promised distance between two noops.
func (p *Plan) Interval() time.Duration {
	return time.Duration(p.NoopInterval * float64(time.Second))
}

// Hold is how long each stream is held before its end is asked for.
func (p *Plan) Hold() time.Duration {
	return time.Duration(p.Seconds-DisconnectLead) * time.Second
}

// Late is the lateness above which a noop counts as late.
func (p *Plan) Late() time.Duration { return time.Duration(p.LateMS) * time.Millisecond }

// EndTimeout is how long a stream may take to end after the server has answered the request to end
// it: by default 15 s or 1.5 intervals, so that a service that looks for it at its next tick has time.
func (p *Plan) EndTimeout() time.Duration {
	if p.EndTimeoutS > 0 {
		return time.Duration(p.EndTimeoutS * float64(time.Second))
	}
	return max(15*time.Second, p.Interval()*3/2)
}

// Teardown is how long a runner may take to end its streams: load-tests/lib/config.js reckons the same.
func (p *Plan) Teardown() time.Duration {
	const endsPerSecond = 50
	return 45*time.Second + p.EndTimeout() + time.Duration(p.PerRunner()/endsPerSecond+1)*time.Second
}

// MaxOutage is the longest time that a stream may be lost; not limited where ok is false: by -1, or
// because a stream that is lost stays lost.
func (p *Plan) MaxOutage() (limit time.Duration, ok bool) {
	switch {
	case !p.Reconnect || p.MaxOutageS < 0:
		return 0, false
	case p.MaxOutageS == 0:
		return DefaultMaxOutage, true
	}
	return time.Duration(p.MaxOutageS * float64(time.Second)), true
}

// NoopsPerConnection is floor(held / interval), the original's arithmetic; 0 without an interval, as
// in the plan of a suite of which no shard came.
func (p *Plan) NoopsPerConnection() int {
	if p.Interval() <= 0 {
		return 0
	}
	return int(p.Hold() / p.Interval())
}

// DeviceID is the id of the nth connection, from 0.
func (p *Plan) DeviceID(n int) string { return p.Prefix + strconv.Itoa(n) }

// Number is which connection has this id, from 0; not ok for an id that is not of this plan.
func (p *Plan) Number(id string) (n int, ok bool) {
	digits, ok := strings.CutPrefix(id, p.Prefix)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil && n >= 0 && n < p.Connections && strconv.Itoa(n) == digits
}
