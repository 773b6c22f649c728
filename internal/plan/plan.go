// Package plan defines all settings of a run. The command line makes a Plan, the scripts execute it, the shards
// contain it, and the verdict compares it with the results.
package plan

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/sseclient/coding"
)

// DisconnectLead is the time in seconds between the request for the end of a stream and the end of the run. In that
// time the run observes the end of the stream.
const DisconnectLead = 5

// Limits of the end of streams.
const (
	endTimeoutSeconds   = 15  // default for one stream, unless endTimeoutIntervals are longer
	endTimeoutIntervals = 1.5 // default for one stream, in noop intervals
	teardownSeconds     = 45  // for a runner, in addition to the ends of its streams
	endsPerSecond       = 50  // minimum rate of the requests with which a runner ends its streams
)

// Defaults of MAX_OUTAGE and BACK_WITHIN.
const (
	DefaultMaxOutage  = 30 * time.Second
	DefaultBackWithin = time.Minute
)

// A Plan has the settings of one run. The zero value is not valid; see Check. Settings (table.go) describes each field.
type Plan struct {
	TestID            string  `json:"testid"`
	RunID             string  `json:"run_id,omitempty"` // drawn by `soak run` for each run; "": k6 alone
	Suite             string  `json:"suite,omitempty"`  // name in internal/suite; "": soak
	Connections       int     `json:"connections"`
	Seconds           int     `json:"seconds"` // of the whole run; a stream is open for DisconnectLead less
	NoopInterval      float64 `json:"noop_interval_s"`
	Runners           int     `json:"runners"`
	ConnectionsPerVU  int     `json:"connections_per_vu"`
	BackendURL        string  `json:"backend_url"` // one or several, separated by commas; see BackendOf
	Prefix            string  `json:"prefix"`      // prefix of the client ids: PREFIX0 … PREFIX(connections−1)
	LateMS            int     `json:"late_ms"`
	MaxLate           int     `json:"max_late"` // negative: no limit
	Reconnect         bool    `json:"reconnect"`
	EndTimeoutS       float64 `json:"end_timeout_s"`                    // 0: see EndTimeout
	MaxHidden         int     `json:"max_hidden"`                       // -1: 0 with ids or a ledger, else no limit
	RequireMessages   bool    `json:"require_messages,omitempty"`       // a run that checked no message is invalid
	MinCoverage       float64 `json:"min_coverage,omitempty"`           // percent; 0: 100. See RequiredCoverage
	WindowS           float64 `json:"window_s,omitempty"`               // 0: an hour. See Window
	MaxMemorySlope    float64 `json:"max_memory_slope,omitempty"`       // of the target, in MiB per hour; 0: no limit
	MaxLatenessSlope  float64 `json:"max_lateness_slope,omitempty"`     // of the p99, in ms per hour; 0: no limit
	MaxReconnectSlope float64 `json:"max_reconnect_slope,omitempty"`    // of reconnects per hour, per hour; 0: no limit
	MaxConnectSlope   float64 `json:"max_connect_slope,omitempty"`      // of the average, in ms per hour; 0: no limit
	MaxOutageS        float64 `json:"max_outage_s"`                     // -1: no limit; 0: DefaultMaxOutage
	Control           int     `json:"control,omitempty"`                // streams of each runner to ControlURL
	ControlURL        string  `json:"control_url,omitempty"`            // "": no control group
	BackWithinS       float64 `json:"back_within_s,omitempty"`          // -1: no limit; 0: DefaultBackWithin
	AcceptEncoding    string  `json:"accept_encoding,omitempty"`        // gzip or browser; "": none
	HTTPVersion       string  `json:"http_version,omitempty"`           // 1.1 or 2; "": chosen by the server
	FollowRedirects   bool    `json:"follow_redirects,omitempty"`       // of streams, to other origins
	PerConnection     int     `json:"streams_per_connection,omitempty"` // over HTTP/2; 0: limit of the server

	// Settings of a described service (internal/service); not in the JSON of a soak of noops. See service.go.
	Service     string   `json:"service,omitempty"`      // name, or absolute path of a module; "": noop
	Topics      int      `json:"topics,omitempty"`       // number of topics with a publisher; 0: none
	TopicNames  []string `json:"topic_names,omitempty"`  // of topics that exist on the service; empty: see TopicName
	PublishRate float64  `json:"publish_rate,omitempty"` // messages per second over all topics
	MessageKB   int      `json:"message_kb,omitempty"`   // of padding in each published message
	TokenTTL    int      `json:"token_ttl_s,omitempty"`  // lifetime of a token, passed to token(); 0: not passed
	Marker      string   `json:"marker,omitempty"`       // value of {run}, which identifies the messages of this run

	// Settings of a run that disconnects its own streams; not in the JSON of others. See cuts.go.
	CutsPerSecond float64 `json:"cuts_per_second,omitempty"` // over all runners; 0: none
	CutShares     string  `json:"cuts,omitempty"`            // of the kinds; "": equal shares
	PauseS        float64 `json:"pause_s,omitempty"`         // 0: defaultPause
	Seed          int     `json:"seed,omitempty"`            // of the cuts
	AllowGaps     bool    `json:"allow_announced_gaps,omitempty"`
}

// idPart matches a test id, and the prefix of client ids. Both may be empty.
var idPart = regexp.MustCompile(`^[A-Za-z0-9._-]*$`)

// Check returns an error if the plan is not valid.
func (p *Plan) Check() error {
	if err := p.checkRate(); err != nil {
		return err
	}
	if err := p.check(p.Settings()); err != nil {
		return err
	}
	return p.checkStreams()
}

// CheckDeclared validates the settings that every suite has. It is for a plan whose script declares the others.
func (p *Plan) CheckDeclared() error { return p.check(SuiteSettings(p.Settings())) }

// CheckTestID returns an error unless id can name a folder or is empty.
func CheckTestID(id string) error {
	if !idPart.MatchString(id) || id == "." || id == ".." {
		return fmt.Errorf("TESTID must be the name of a folder, of letters, digits, '.', '_' and '-', got %q", id)
	}
	return nil
}

// check validates each of the settings, and the values that need more than bounds: TESTID, encoding, HTTP version and
// URLs.
func (p *Plan) check(settings []Setting) error {
	for _, s := range settings {
		if err := s.check(); err != nil {
			return err
		}
	}
	if err := CheckTestID(p.TestID); err != nil {
		return err
	}
	if _, err := coding.AcceptEncoding(cmp.Or(p.AcceptEncoding, noEncoding)); err != nil {
		return fmt.Errorf("ACCEPT_ENCODING %w", err)
	}
	if !slices.Contains(httpVersions, cmp.Or(p.HTTPVersion, anyHTTP)) {
		return fmt.Errorf("HTTP_VERSION must be auto, 1.1 or 2, got %q", p.HTTPVersion)
	}
	return cmp.Or(p.CheckControl(), p.checkURL())
}

// checkStreams validates the settings of a soak against each other.
func (p *Plan) checkStreams() error {
	if err := p.checkService(); err != nil {
		return err
	}
	switch {
	case p.Service == "" && float64(p.Seconds-DisconnectLead) < 2*p.NoopInterval:
		return fmt.Errorf("SECONDS must be at least %s, so that a stream receives two noops (NOOP_INTERVAL %v), got %d; lengthen the run or shorten the interval",
			number(math.Ceil(2*p.NoopInterval)+DisconnectLead), p.NoopInterval, p.Seconds)
	case p.Iterations() < p.Runners:
		return fmt.Errorf("RUNNERS must be at most the number of virtual users, %d, got %d; lower RUNNERS or CONNECTIONS_PER_VU",
			p.Iterations(), p.Runners)
	case !idPart.MatchString(p.Prefix):
		return fmt.Errorf("PREFIX must consist of letters, digits, '.', '_' and '-', got %q", p.Prefix)
	case len(p.Prefix)+len(strconv.Itoa(p.Connections)) > 64:
		return fmt.Errorf("PREFIX and the number of a client must have at most 64 characters together, got %q", p.Prefix)
	}
	return p.checkCuts()
}

// longestURL is the maximum length of a URL in bytes, below the limit of a shard.
const longestURL = 1000

// CheckControl validates the address of the reference target, so that an invalid one is reported at the start of a
// run. The error omits the address, which may contain a password.
func (p *Plan) CheckControl() error {
	if p.ControlURL == "" {
		return nil
	}
	normal, err := NormalURL("CONTROL_URL", p.ControlURL)
	if err != nil || !strings.HasPrefix(normal, "http://") || strings.TrimSpace(p.ControlURL) != p.ControlURL || len(normal) > longestURL {
		return errors.New("CONTROL_URL must be the address of a reference target, such as http://10.0.0.2:7070, without TLS, password or query")
	}
	return nil
}

// checkURL validates BACKEND_URL. Each of several services needs a runner.
func (p *Plan) checkURL() error {
	if _, err := NormalURLs("BACKEND_URL", p.BackendURL); err != nil {
		return err
	}
	if n := len(p.BackendURLs()); n > p.Runners {
		return fmt.Errorf("RUNNERS must be at least the number of services in BACKEND_URL, %d, got %d; raise RUNNERS", n, p.Runners)
	}
	return nil
}

// BackendURLs returns the URLs of the services, in their normal form if the plan passes Check. If BACKEND_URL is empty,
// the result is one empty string.
func (p *Plan) BackendURLs() []string {
	normal, err := NormalURLs("BACKEND_URL", p.BackendURL)
	if err != nil {
		normal = p.BackendURL
	}
	return strings.Split(normal, ",")
}

// BackendOf returns the URL of the service of a runner (from 1). The runners use the services in turn.
func (p *Plan) BackendOf(runner int) string {
	all := p.BackendURLs()
	return all[max(runner-1, 0)%len(all)]
}

// PerRunner returns the maximum number of connections of one runner.
func (p *Plan) PerRunner() int { return p.Share(1) }

// Share returns the number of connections of a runner (from 1). k6 assigns the virtual users to the runners in turn,
// and the last virtual user may have fewer connections than the others.
func (p *Plan) Share(runner int) int {
	users, perUser := p.Iterations(), max(p.ConnectionsPerVU, 1)
	if runner > users {
		return 0
	}
	connections := ((users-runner)/p.Runners + 1) * perUser
	if (users-runner)%p.Runners == 0 {
		connections -= users*perUser - p.Connections
	}
	return connections
}

// PerBackend returns the number of connections of the first of several services. No other service has more.
func (p *Plan) PerBackend(services int) (connections int) {
	for runner := 1; runner <= p.Runners; runner += services {
		connections += p.Share(runner)
	}
	return connections
}

// HTTP2 is the HTTPVersion in which streams share connections.
const HTTP2 = "2"

// defaultPerConnection is the number of streams that RFC 9113 (6.5.2) recommends a server to allow per HTTP/2
// connection.
const defaultPerConnection = 100

// Sockets returns the maximum number of connections for a number of streams. Virtual users do not share connections.
func (p *Plan) Sockets(streams int) int {
	if p.HTTPVersion != HTTP2 {
		return streams
	}
	perUser, perConnection := max(p.ConnectionsPerVU, 1), cmp.Or(p.PerConnection, defaultPerConnection)
	users, remainder := streams/perUser, streams%perUser
	return users*((perUser-1)/perConnection+1) + (remainder+perConnection-1)/perConnection
}

// Density returns the number of streams per virtual user. A virtual user needs twenty times the memory of a stream, so
// streams share it. With several virtual users a runner uses all its cores, and the failure of one affects few streams.
// The number of virtual users is limited, because all of them have requests in flight when their streams end.
func (p *Plan) Density() int {
	const maxStreams, minUsers, maxUsers = 50, 8, 100
	perRunner := p.Connections / max(p.Runners, 1)
	return max(min(perRunner/minUsers, maxStreams), perRunner/maxUsers, 1)
}

// Iterations returns the number of virtual users, each of which has one iteration.
func (p *Plan) Iterations() int {
	return (p.Connections-1)/max(p.ConnectionsPerVU, 1) + 1
}

// noEncoding is the value of ACCEPT_ENCODING for uncompressed streams.
const noEncoding = "none"

// anyHTTP is the value of HTTP_VERSION that lets the server choose over TLS, and means HTTP/1.1 over http://.
const anyHTTP = "auto"

var httpVersions = []string{anyHTTP, "1.1", HTTP2}

// Accept returns the Accept-Encoding of each stream; "" for none. The plan must pass Check.
func (p *Plan) Accept() string {
	accept, _ := coding.AcceptEncoding(p.AcceptEncoding)
	return accept
}

// Interval returns the planned time between two noops.
func (p *Plan) Interval() time.Duration {
	return time.Duration(p.NoopInterval * float64(time.Second))
}

// Hold returns the time from the start of the run until the end of each stream is requested.
func (p *Plan) Hold() time.Duration {
	return time.Duration(p.Seconds-DisconnectLead) * time.Second
}

// LateLimit returns the lateness above which a noop counts as late.
func (p *Plan) LateLimit() time.Duration { return time.Duration(p.LateMS) * time.Millisecond }

// EndTimeout returns the maximum time between the response to the request to end a stream and the end of the stream.
// The default is the longer of 15 s and 1.5 intervals, because a service may end the stream only when the next noop is
// due.
func (p *Plan) EndTimeout() time.Duration {
	if p.EndTimeoutS > 0 {
		return time.Duration(p.EndTimeoutS * float64(time.Second))
	}
	return max(endTimeoutSeconds*time.Second, time.Duration(float64(p.Interval())*endTimeoutIntervals))
}

// Teardown returns the maximum time that a runner needs to end its streams.
func (p *Plan) Teardown() time.Duration {
	return teardownSeconds*time.Second + p.EndTimeout() + time.Duration(p.Connections/p.Runners/endsPerSecond+1)*time.Second
}

// MaxOutage returns the maximum outage of a client. A value of 0 means the default. ok is false if there is no limit:
// MAX_OUTAGE is -1, or clients do not reconnect.
func (p *Plan) MaxOutage() (limit time.Duration, ok bool) {
	return p.reconnectLimit(p.MaxOutageS, DefaultMaxOutage)
}

// BackWithin returns the time within which 99.9 % of the lost streams must reconnect. A value of 0 means the default.
// ok is false if there is no limit: BACK_WITHIN is -1, or clients do not reconnect.
func (p *Plan) BackWithin() (limit time.Duration, ok bool) {
	return p.reconnectLimit(p.BackWithinS, DefaultBackWithin)
}

// reconnectLimit returns a limit for clients that reconnect; seconds 0 means defaultLimit, and below 0 no limit. ok is
// false if there is no limit, or if clients do not reconnect.
func (p *Plan) reconnectLimit(seconds float64, defaultLimit time.Duration) (limit time.Duration, ok bool) {
	if !p.Reconnect || seconds < 0 {
		return 0, false
	}
	return cmp.Or(time.Duration(seconds*float64(time.Second)), defaultLimit), true
}

// MaxLastOutage returns the maximum outage of a client that is disconnected when the run ends: MAX_OUTAGE, or its
// default if MAX_OUTAGE is -1. It is 0 if clients do not reconnect.
func (p *Plan) MaxLastOutage() time.Duration {
	if limit, ok := p.MaxOutage(); ok || !p.Reconnect {
		return limit
	}
	return DefaultMaxOutage
}

// fullCoverage is the default of MIN_COVERAGE, in percent.
const fullCoverage = 100

// RequiredCoverage returns the share of the planned client time that a run must observe, 0 to 1.
func (p *Plan) RequiredCoverage() float64 { return cmp.Or(p.MinCoverage, fullCoverage) / fullCoverage }

// defaultWindow is the default of WINDOW.
const defaultWindow = time.Hour

// Window returns the length of a window: a part of the run with its own row in reports. A run has windows if it is
// longer than one.
func (p *Plan) Window() time.Duration {
	return cmp.Or(time.Duration(p.WindowS*float64(time.Second)), defaultWindow)
}

// NoopsPerConnection returns the minimum number of noops of a stream that is open for Hold: floor(Hold / Interval). It
// returns 0 if the plan has no interval.
func (p *Plan) NoopsPerConnection() int {
	if p.Interval() <= 0 {
		return 0
	}
	return int(p.Hold() / p.Interval())
}

// DeviceID returns the id of client n, from 0.
func (p *Plan) DeviceID(n int) string { return p.Prefix + strconv.Itoa(n) }

// Number returns the number of the client with an id, from 0. ok is false if the id does not belong to the plan.
func (p *Plan) Number(id string) (n int, ok bool) {
	digits, ok := strings.CutPrefix(id, p.Prefix)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil && n >= 0 && n < p.Connections && strconv.Itoa(n) == digits
}
