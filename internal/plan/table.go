package plan

import (
	"fmt"

	"github.com/sse-soak/sse-soak/internal/sseclient/coding"
)

//go:generate go run ./generate ../..

const (
	year             = 366 * 24 * 3600 // seconds
	shortestInterval = .001            // seconds
	maxMessageKB     = 1024

	maxPerConnection = 65535
)

// The suites with settings of the plan that no other suite has.
const (
	resume = "resume"
	slow   = "slow"
)

// DefaultConnections is the number of streams of a soak, unless CONNECTIONS or an option of k6 sets it.
const DefaultConnections = 1200

// MaxConnections is the maximum of CONNECTIONS. Within this bound no sum and no duration overflows.
const MaxConnections = 10_000_000

// Settings returns the table of all settings of a plan, bound to the fields of p. It defines flags with help and
// bounds, the environment of runners and pods, the comparison in a merge, and the settings that scripts read. From it,
// `go generate ./internal/plan` writes docs/reference/settings.md, load-tests/types/soak.d.ts and
// load-tests/lib/plan.js.
func (p *Plan) Settings() []Setting {
	const (
		control    = "reference streams per runner, which show delays of the generator (0: none)"
		controlURL = "URL of the reference server of the control group (empty: serve one here)"
	)
	return []Setting{
		{Name: "CONNECTIONS", Value: &p.Connections, Default: DefaultConnections, Min: 1, Max: MaxConnections, Rule: fmt.Sprintf("from 1 to %d", MaxConnections),
			Help: "number of streams", Script: "connections", ScriptHelp: "streams over all runners, 0: iterations × `connectionsPerVU` of the options", Scope: Parts},
		{Name: "SECONDS", Value: &p.Seconds, Default: 3600, Min: DisconnectLead + 1, Max: year, Rule: fmt.Sprintf("over %d and at most a year, because streams end %[1]d s before the end", DisconnectLead),
			Help: fmt.Sprintf("length of the run in seconds; streams end %d s earlier", DisconnectLead), Script: "seconds"},
		{Name: "NOOP_INTERVAL", Value: &p.NoopInterval, Default: 15., Min: shortestInterval, Rule: "at least 0.001 seconds",
			Help: "seconds between two noops of one stream", Script: "noopInterval"},
		{Name: "RUNNERS", Value: &p.Runners, Default: 2, Min: 1, Rule: "at least 1",
			Help: "k6 processes that share the streams", SuiteHelp: "k6 processes that share the load", Script: "runners", Scope: Parts},
		{Name: "CONNECTIONS_PER_VU", Value: &p.ConnectionsPerVU, Min: 1, Rule: "at least 1",
			Help:   "streams per virtual user (0: up to 50, more beyond 5,000 streams per runner)",
			Script: "connectionsPerVU", ScriptHelp: "streams per virtual user, at least 1", Doc: "docs/distributed.md"},
		{Name: "BACKEND_URL", Value: &p.BackendURL,
			Help:      "service URL, or up to one per runner, comma-separated (empty: start a backend)",
			SuiteHelp: "URL of the service (empty: start a backend here)", Script: "backendUrl", ScriptHelp: "the service, `http://` or `https://`"},
		{Name: "PREFIX", Value: &p.Prefix, Help: "prefix of the client ids: PREFIX0, PREFIX1 and so on (default \"soak-\")",
			Script: "prefix", ScriptHelp: "prefix of the client ids: `PREFIX0`, `PREFIX1`, … Letters, digits, `.`, `_`, `-`", Scope: Parts},
		{Name: "TESTID", Value: &p.TestID, Help: "name of the run and of its folder (default: the time, UTC)",
			SuiteHelp: "name of the run and of its folder (default: the time, UTC)", Script: "testid", ScriptHelp: "name of the run, '' for none", Scope: Runners},
		{Name: "LATE_MS", Value: &p.LateMS, Default: 1000, Min: 1, Max: year * 1000, Rule: "at least 1 ms, and at most a year",
			Help: "lateness in milliseconds above which a message counts as late", Script: "lateMs"},
		{Name: "MAX_LATE", Value: &p.MaxLate, Default: -1, Help: "maximum number of late messages (-1: no limit)"},
		{Name: "RECONNECT", Value: &p.Reconnect, Help: "reconnect if disconnected (set by resume, --token-ttl, or the description)", Script: "reconnect"},
		{Name: "MAX_HIDDEN", Value: &p.MaxHidden, Default: -1, Doc: "docs/accounting.md",
			Help: "maximum undetectable losses (-1: 0 or no limit, depending on the evidence)"},
		{Name: "REQUIRE_MESSAGES", Value: &p.RequireMessages, Doc: "docs/services.md",
			Help: "make a run invalid if no message is checked, even if the description allows it"},
		{Name: "MIN_COVERAGE", Value: &p.MinCoverage, ZeroText: "100", Min: 1, Max: fullCoverage, Rule: "a percentage from 1 to 100", Doc: "docs/accounting.md",
			Help: "minimum percentage of planned client time that is watched, if runners end early"},
		{Name: "WINDOW", Value: &p.WindowS, ZeroText: "3600", Min: 10, Max: year, Rule: "from 10 seconds to a year",
			Help: "length of a window in seconds; reports of longer runs have a row per window"},
		{Name: "MAX_MEMORY_SLOPE", Value: &p.MaxMemorySlope, Max: 1e6, Rule: "positive MiB per hour up to 1000000, or 0 (no limit)", Doc: "docs/report.md",
			Help: "maximum growth of target memory over all windows, in MiB per hour (0: no limit)"},
		{Name: "MAX_LATENESS_SLOPE", Value: &p.MaxLatenessSlope, Max: 1e6, Rule: "positive ms per hour up to 1000000, or 0 (no limit)", Doc: "docs/report.md",
			Help: "maximum growth of lateness p99 over all windows, in ms per hour (0: no limit)"},
		{Name: "MAX_RECONNECT_SLOPE", Value: &p.MaxReconnectSlope, Max: 1e9, Rule: "a positive number per hour up to 1000000000, or 0 (no limit)", Doc: "docs/report.md",
			Help: "maximum hourly growth of reconnects per hour over all windows (0: no limit)"},
		{Name: "MAX_CONNECT_SLOPE", Value: &p.MaxConnectSlope, Max: 1e6, Rule: "positive ms per hour up to 1000000, or 0 (no limit)", Doc: "docs/report.md",
			Help: "maximum growth of connect time over all windows, in ms per hour (0: no limit)"},
		{Name: "MAX_OUTAGE", Value: &p.MaxOutageS, Default: defaultMaxOutage.Seconds(), Max: year, NoLimit: true,
			Rule: "positive seconds up to a year, or -1 (no limit)",
			Help: "maximum length of each outage in seconds, with --reconnect (-1: no limit)"},
		{Name: "BACK_WITHIN", Value: &p.BackWithinS, Default: defaultBackWithin.Seconds(), Max: year, NoLimit: true, Doc: "docs/suites.md",
			Rule: "positive seconds up to a year, or -1 (no limit)",
			Help: "seconds within which 99.9 % of the clients must reconnect (-1: no limit)"},
		{Name: "END_TIMEOUT", Value: &p.EndTimeoutS, Max: year, Rule: "positive seconds up to a year, or 0 (the default)",
			Help:   "maximum time from the end request's response to the stream's end, in seconds (default: the longer of 15 s and 1.5 intervals)",
			Script: "endTimeout?"},
		{Name: "SERVICE", Value: &p.Service, ZeroText: NoopService, Doc: "docs/services.md", Scope: Runners,
			Help: "service description: a name in load-tests/services, or the path of a .js file"},
		{Name: "TOPICS", Value: &p.Topics, Max: MaxConnections, Rule: fmt.Sprintf("a whole number up to %d (0: publish nothing)", MaxConnections),
			Help: "number of topics to publish to; streams are spread evenly over them (0: none)", Script: "topics?", ScriptHelp: "topics that the run publishes to, 0 for none"},
		{Name: "PUBLISH_RATE", Value: &p.PublishRate, ZeroText: "0", Min: .01, Max: 10000, Rule: "from 0.01 to 10000 messages per second, or 0 (publish nothing)",
			Help: "messages to publish per second, across all topics", Script: "publishRate?", ScriptHelp: "messages per second that the run publishes, 0 for none"},
		{Name: "TOPIC", Value: &p.TopicNames, Doc: "docs/services.md",
			Help: "existing topic to use instead of generated names (repeatable)"},
		{Name: "TOKEN_TTL", Value: &p.TokenTTL, Max: year, Rule: "a whole number of seconds up to a year, or 0 (not passed)", Doc: "docs/services.md",
			Help: "token lifetime in seconds for token(); implies --reconnect (0: not passed)", Script: "tokenTtl?", ScriptHelp: "lifetime of tokens in seconds, 0: not passed"},
		{Name: "ACCEPT_ENCODING", Value: &p.AcceptEncoding, ZeroText: coding.NoneSetting, Texts: coding.Settings, Rule: coding.SettingsRule, Doc: "docs/services.md",
			Help:   "accepted compression of streams: " + coding.SettingsRule + " (" + coding.Browser + ")",
			Script: "acceptEncoding?", ScriptHelp: "accepted compression of streams: `none`, `gzip` or `browser`"},
		{Name: "HTTP_VERSION", Value: &p.HTTPVersion, ZeroText: anyHTTP, Texts: httpVersions, Rule: httpRule, Doc: "docs/services.md",
			Help:   "HTTP version of streams: auto (negotiated over TLS), 1.1 or 2 (h2c over http://)",
			Script: "httpVersion?", ScriptHelp: "HTTP version of streams: `auto`, `1.1` or `2`"},
		{Name: "STREAMS_PER_CONNECTION", Value: &p.PerConnection, Max: maxPerConnection, Rule: fmt.Sprintf("a whole number up to %d, or 0 (limit of the server)", maxPerConnection), Doc: "docs/services.md",
			Help:   "maximum number of streams per HTTP/2 connection (0: limit of the server)",
			Script: "streamsPerConnection?", ScriptHelp: "maximum number of streams per HTTP/2 connection, 0: limit of the server"},
		{Name: "FOLLOW_REDIRECTS", Value: &p.FollowRedirects, Doc: "docs/services.md",
			Help:   "follow redirects to another origin, without the headers of the description",
			Script: "followRedirects?", ScriptHelp: "whether streams follow redirects to another origin"},
		{Name: "CONTROL", Value: &p.Control, Default: 20, Max: 1000, Rule: "a whole number of streams up to 1000, or 0 (none)", Doc: "docs/accounting.md", Scope: Runners,
			Help: control, SuiteHelp: control},
		{Name: "CONTROL_URL", Value: &p.ControlURL, Doc: "docs/distributed.md", Scope: Runners,
			Help: controlURL, SuiteHelp: controlURL},
		{Name: "CUTS_PER_SECOND", Value: &p.CutsPerSecond, ZeroText: "0", Min: .001, Max: maxCuts, OnlySuite: resume, Doc: "docs/suites.md", Rule: fmt.Sprintf("from 0.001 to %d per second, or 0 (none)", maxCuts),
			Help: "streams to disconnect per second, across all runners"},
		{Name: "CUTS", Value: &p.CutShares, ZeroText: defaultShares, OnlySuite: resume, Doc: "docs/suites.md",
			Help: "shares of disconnects: fin (closed), rst (reset), half (half-open), pause"},
		{Name: "PAUSE", Value: &p.PauseS, ZeroText: fmt.Sprint(defaultPause), Min: .1, Max: 3600, OnlySuite: resume, Rule: "from 0.1 to 3600 seconds",
			Help: "duration of a reader pause in seconds"},
		{Name: "SEED", Value: &p.Seed, OnlySuite: resume, Help: "seed of the times and kinds of disconnects"},
		{Name: "ALLOW_ANNOUNCED_GAPS", Value: &p.AllowGaps, OnlySuite: resume, Doc: "docs/suites.md",
			Help: "allow missing messages after a disconnect if announced (resume.gap)"},
		{Name: "MESSAGE_KB", Value: &p.MessageKB, Max: maxMessageKB, OnlySuite: slow, Doc: "docs/suites.md", Rule: fmt.Sprintf("a whole number of KB up to %d", maxMessageKB),
			Help: "size of broadcast messages in KB; the bundled backend accepts up to 63", Script: "messageKB?"},
		{Name: "MARKER", Value: &p.Marker, Scope: Parts},
		{Name: "SOAK_RUN_ID", Value: &p.RunID, Scope: Runners},
		{Name: "SOAK_SUITE", Value: &p.Suite, Scope: Runners},
	}
}

// A Local has the settings of `soak run` outside the plan. No runner receives them, and no merge compares them.
type Local struct {
	Out, Shards, StartAt, On, Overlay  string
	ControlListen, Progress, Pin, Live string
	CA                                 string // path of a PEM file; "": only the certificates of the system
	Insecure                           bool
	At                                 []string
	AtEnv                              string
}

// LiveAddress is the default address of the live page: a free port that only this machine can reach.
const LiveAddress = "127.0.0.1:0"

// Values of PROGRESS.
const (
	ProgressLine = "line"
	ProgressFull = "full"
)

// Values of PIN.
const (
	PinAuto = "auto"
	PinNone = "none"
)

// Settings returns the table of the local settings, bound to the fields of l.
func (l *Local) Settings() []Setting {
	const (
		out      = "folder of all runs; each run has its own subfolder"
		progress = "progress on a terminal: line, or full with a line per runner and new findings"
		pin      = "auto: half of the local cores for the target, half for runners; none: all shared (default: auto in suites of plain requests, else none)"
		ca       = "file of PEM certificates to trust for TLS, in addition to the system's"
		insecure = "do not verify TLS certificates; the report has a warning"
		live     = "show the run in a browser on this machine (--live=:8080: on any machine)"
	)
	return []Setting{
		{Name: "OUT", Value: &l.Out, Default: "results", Help: out, SuiteHelp: out, Scope: LocalOnly},
		{Name: "SHARDS", Value: &l.Shards, Scope: LocalOnly, Doc: "docs/distributed.md",
			Help: "folder or s3://BUCKET/PREFIX for the shards of all runs (default: the folder of the run)"},
		{Name: "START_AT", Value: &l.StartAt, Scope: LocalOnly, Help: "start time of all machines: HH:MM[:SS] in UTC, or RFC 3339"},
		{Name: "CONTROL_LISTEN", Value: &l.ControlListen, Default: "127.0.0.1:0", Scope: LocalOnly, Doc: "docs/distributed.md",
			Help: "listen address of the reference server, such as :8090 for other machines"},
		{Name: "AT", Value: &l.At, Scope: LocalOnly, Doc: "docs/suites.md",
			Help: "command during the run, such as '60s deploy: systemctl restart hub' (repeatable)"},
		{Name: "AT_ENV", Value: &l.AtEnv, Scope: LocalOnly, Doc: "docs/suites.md",
			Help: "more environment variables for --at commands: NAME,NAME (all: every variable)"},
		{Name: "PROGRESS", Value: &l.Progress, Default: ProgressLine, Scope: LocalOnly, Doc: "docs/report.md",
			Help: progress, SuiteHelp: progress},
		{Name: "PIN", Value: &l.Pin, Scope: LocalOnly, Help: pin, SuiteHelp: pin},
		{Name: "LIVE", Value: &l.Live, BareValue: "1", Scope: LocalOnly, Doc: "docs/report.md", Help: live, SuiteHelp: live},
		{Name: "CA", Value: &l.CA, Scope: LocalOnly, Doc: "docs/services.md", Help: ca, SuiteHelp: ca},
		{Name: "INSECURE", Value: &l.Insecure, Scope: LocalOnly, Doc: "docs/services.md", Help: insecure, SuiteHelp: insecure},
		{Name: "ON", Value: &l.On, Default: "local", Scope: LocalOnly, Help: "driver of the runners: local, or k8s (docs/distributed.md)"},
		{Name: "OVERLAY", Value: &l.Overlay, Default: "local", Scope: LocalOnly, Help: "overlay for k8s: a name in infra/k6-operator/overlays, or a path"},
	}
}
