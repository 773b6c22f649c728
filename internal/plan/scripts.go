package plan

import (
	"math"
	"slices"

	"github.com/sse-soak/sse-soak/internal/sseclient/coding"
)

// The types of the settings of scripts, whose rows have no value.
var (
	textType    = (*string)(nil)
	wholeType   = (*int)(nil)
	decimalType = (*float64)(nil)
	numbersType = (*[]any)(nil)
)

// maxNumber is the maximum of settings of scripts that need no maximum of their own. As seconds it is 32 years: k6 and
// time.Duration accept the sum of several such times.
const maxNumber = 1e9

func atLeast(minimum float64, name, help string) Setting {
	return Setting{Name: name, Value: decimalType, Min: minimum, Max: maxNumber, Rule: "at least " + number(minimum), Help: help}
}

func overZero(name, help string) Setting {
	return Setting{Name: name, Value: decimalType, Min: math.SmallestNonzeroFloat64, Max: maxNumber, Rule: "over 0", Help: help}
}

func seedOf(help string) Setting {
	return Setting{Name: "SEED", Value: decimalType, Rule: "at least 0", Help: help}
}

func percent(name, help string) Setting {
	return Setting{Name: name, Value: decimalType, Max: 100, Rule: "from 0 to 100", Help: help}
}

func countOf(minimum float64, name, help string) Setting {
	return Setting{Name: name, Value: wholeType, Min: minimum, Max: maxNumber, Rule: "at least " + number(minimum), Help: help}
}

// shareOf returns the row of a setting that is the percentage of streams on which a suite acts.
func shareOf(name, help string) Setting {
	return Setting{Name: name, Value: decimalType, Min: 1, Max: 50, Rule: "from 1 to 50 percent", Help: help}
}

// sharedRows returns the named rows of Plan.Settings, for scripts that declare the plan of their streams.
func sharedRows(names ...string) []Setting {
	return slices.DeleteFunc(new(Plan).Settings(), func(s Setting) bool { return !slices.Contains(names, s.Name) })
}

// limitSettings are the settings of suites that judge loads of requests.
var limitSettings = []Setting{
	percent("MAX_FAILED_PERCENT", "maximum percentage of failed requests in a good stage"),
	atLeast(0, "MAX_P95_MS", "maximum p95 of successful responses in a good stage, in milliseconds"),
	percent("MIN_ANSWERED_PERCENT", "minimum percentage of offered requests that succeed in a good stage"),
	overZero("TIMEOUT_SECONDS", "maximum time that a client waits for a response, in seconds"),
}

var streamSettings = sharedRows("NOOP_INTERVAL", "LATE_MS", "ACCEPT_ENCODING", "HTTP_VERSION", "STREAMS_PER_CONNECTION", "FOLLOW_REDIRECTS", "END_TIMEOUT")

// MaxOpenLate is the name of a setting of suites that disturb only a share of their streams: storm, slow and vanish.
const MaxOpenLate = "MAX_OPEN_LATE"

var bystanderSetting = Setting{Name: MaxOpenLate, Value: wholeType, NoLimit: true, Rule: "at least 0, or -1 (no limit)",
	Help: "maximum late messages on undisturbed streams (-1: no limit; default: 0)"}

// scriptSettings is the table of the settings that the script of a suite reads, by suite. The profiles of the script
// have the defaults.
var scriptSettings = map[string][]Setting{
	"burst": append([]Setting{
		{Name: "BURSTS", Value: numbersType, Help: "sizes of the bursts, separated by commas"},
		atLeast(0, "BURST_SECONDS", "maximum duration of a burst in seconds"),
		countOf(1, "SEQUENCE", "number of sequential requests after the bursts"),
		atLeast(0, "SEQUENCE_SECONDS", "maximum duration of the sequential requests in seconds"),
	}, limitSettings...),
	"capacity": slices.Concat([]Setting{
		countOf(1, "STEP", "number of streams that each step adds"),
		atLeast(0, "STEP_SECONDS", "duration of a step in seconds; the run then waits for the noops that are due"),
		atLeast(0, "CEILING", "maximum number of streams"),
	}, streamSettings, []Setting{
		atLeast(0, "MIN_CONNECTIONS", "number of streams that must be sustained for a pass (0: any number)"),
	}),
	"churn": slices.Concat([]Setting{
		atLeast(0, "CONNECTIONS", "concurrent streams"),
		atLeast(.1, "MEAN_HOLD", "mean time that a stream stays open, in seconds (exponential distribution)"),
		atLeast(0, "SECONDS", "length of the run in seconds"),
	}, streamSettings, []Setting{seedOf("seed of the random durations: equal seeds give equal durations")}),
	"cluster": append([]Setting{
		{Name: "LEVELS", Value: numbersType, Help: "numbers of concurrent requests, separated by commas"},
		{Name: "ROUNDS", Value: wholeType, Min: 1, Rule: "at least 1, or 2 to separate a difference from chance",
			Help: "number of rounds; each applies all levels to both targets in turn"},
		{Name: "ROUND_SECONDS", Value: decimalType, Min: math.SmallestNonzeroFloat64, Max: maxNumber, Rule: "over 0, or at least 2 to find the limiting resource",
			Help: "seconds per level, target and round (below 2: bottleneck not known)"},
		atLeast(0, "WARMUP_SECONDS", "duration of each target's warm-up, which is not counted, in seconds"),
		countOf(2, "CLUSTER_SIZE", "number of backends in the cluster at --cluster-url, or to start here (default: 3)"),
	}, limitSettings...),
	"fanout": slices.Concat([]Setting{
		{Name: "LEVELS", Value: numbersType, Help: "numbers of streams in ascending order, separated by commas"},
		countOf(1, "BROADCASTS", "broadcasts sent at each level"),
		atLeast(0, "EVERY_MS", "time between two broadcasts in milliseconds"),
	}, streamSettings, []Setting{
		atLeast(0, "DELIVERY_SECONDS", "maximum time for a broadcast to reach every stream, in seconds"),
	}),
	"finite": {
		{Name: "SERVICE", Value: textType, Help: "description with end.by 'event': a name in load-tests/services, or a .js file"},
		{Name: "RATE", Value: decimalType, Max: 1e6, Rule: "from 0 to 1000000",
			Help: "requests per second if CONCURRENCY is 0; latencies count from the intended start"},
		countOf(0, "CONCURRENCY", "clients that each send one request at a time (0: RATE requests per second)"),
		overZero("SECONDS", "duration of the load in seconds"),
		{Name: "ARRIVAL", Value: textType, Texts: []string{"constant", "poisson"}, Rule: "constant or poisson",
			Help: "arrival of requests: constant, or poisson with times from SEED"},
		seedOf("seed of arrivals and of the choice of abandoned requests"),
		countOf(1, "MAX_IN_FLIGHT", "maximum concurrent responses if CONCURRENCY is 0; further requests are skipped"),
		{Name: "PROMPTS", Value: textType, Help: "file with one JSON value per line for {prompt} (empty: a text with the id)"},
		overZero("FIRST_TIMEOUT", "maximum silence in seconds before the first content; above it a response is idle"),
		overZero("IDLE_TIMEOUT", "maximum silence in seconds after the first content; above it a response is idle"),
		overZero("LINGER", "maximum time from the terminal event to the end of the stream, in seconds"),
		atLeast(0, "DRAIN", "maximum time from the last request to the end of all responses, in seconds"),
		atLeast(0, "MAX_TTFT_MS", "maximum time to the first content in milliseconds (0: no limit)"),
		atLeast(0, "MAX_GAP_MS", "maximum time between two chunks in milliseconds (0: no limit)"),
		atLeast(0, "MAX_TOTAL_S", "maximum time to the end of a response in seconds (0: no limit)"),
		percent("MIN_GOODPUT", "minimum percentage of responses that are complete and within the set limits"),
		percent("MAX_REFUSED", "maximum percentage of refused requests, such as responses with status 429"),
		percent("ABANDON", "percentage of requests whose client disconnects after ABANDON_AFTER chunks"),
		countOf(1, "ABANDON_AFTER", "number of chunks after which an abandoning client disconnects"),
		{Name: "ABANDON_BY", Value: textType, Texts: []string{"fin", "reset", "vanish"}, Rule: "fin, reset or vanish",
			Help: "how abandoning clients disconnect: fin, reset, or vanish (no acknowledgments)"},
		{Name: "MODEL_URL", Value: textType, Help: "URL of the model behind a gateway, for /ledger and GAUGE (empty: the target)"},
		{Name: "GAUGE", Value: textType, Help: "open requests of a model without /ledger: a metric of its /metrics, or PromQL"},
		{Name: "ACCEPT_ENCODING", Value: textType, Texts: coding.Settings, Rule: coding.SettingsRule, Help: "accepted compression of responses: " + coding.SettingsRule},
		{Name: "HTTP_VERSION", Value: textType, Texts: httpVersions, Rule: httpRule, Help: "HTTP version of responses: auto, 1.1 or 2"},
	},
	"handshake": {
		{Name: "CONNECTIONS", Value: numbersType, Help: "numbers of connections, separated by commas; each is a separate scale"},
		{Name: "CERTS", Value: textType, Help: "folder of the certificates, as written by make certs (default: certs)"},
		countOf(0, "WORKERS", "number of virtual users that connect"),
		countOf(0, "MAX_CONCURRENT", "maximum concurrent connections (0: WORKERS, or all if HOLD_SECONDS is set)"),
		atLeast(0, "RATE_LIMIT", "maximum connections per second (0: no limit)"),
		atLeast(0, "HOLD_SECONDS", "time to keep connections open, in seconds (0: close each after its response)"),
		atLeast(0, "ASK_SECONDS", "time between two requests on an open connection, in seconds"),
		overZero("TIMEOUT_SECONDS", "maximum time from the dial to the response, in seconds"),
		atLeast(0, "MAX_SECONDS", "maximum duration of the run in seconds"),
		percent("MAX_FAILED_PERCENT", "maximum percentage of failed connections at each scale"),
		atLeast(0, "MIN_RATE", "minimum connections per second at each scale (0: any rate)"),
		atLeast(0, "MAX_MEAN_MS", "maximum mean time of a connection at each scale, in milliseconds (0: no limit)"),
	},
	"rampup": append([]Setting{
		{Name: "STAGES", Value: numbersType, Help: "requests per second of each stage, separated by commas"},
		atLeast(1, "STAGE_SECONDS", "duration of a stage in seconds"),
		atLeast(0, "WARMUP_SECONDS", "duration of the warm-up, which is not counted, in seconds"),
		atLeast(0, "CEILING", "highest rate; stages above it are skipped (0: no limit)"),
		{Name: "SEARCH", Value: wholeType, Max: 1, Rule: "0 or 1", Help: "1: search between the last good and the first bad stage, to within 10 %"},
		countOf(1, "MAX_CONNECTIONS", "maximum number of concurrent connections of a stage"),
		atLeast(0, "MIN_RATE", "requests per second that must be sustained for a pass (0: any rate)"),
	}, limitSettings...),
	slow: {
		shareOf("SLOW_PERCENT", "percentage of slow streams, 1 to 50 (default: 10, smoke: 20)"),
		atLeast(0, "SLOW_KB", "KB per second that a slow client reads (0: nothing; default: 0)"),
		atLeast(0, "AFTER_SECONDS", "seconds at the end in which slow clients read everything (default: 20, smoke: 3)"),
		atLeast(0, "MESSAGE_RATE", "broadcasts/s by the bundled backend; other services use PUBLISH_RATE and TOPICS (default: 4, smoke: 10)"),
		atLeast(0, "FILL_KB", "minimum backlog of an open slow stream in KB; below it the run is invalid (default: 4096)"),
		{Name: "CUT_SLOW", Value: wholeType, Min: -1, Max: 1, Rule: "1 if the service has to disconnect slow streams, 0 if it must not, or -1 (either)",
			Help: "1: the service must disconnect slow streams, 0: it must not, -1: either (default: -1)"},
		{Name: "MAX_GROWTH", Value: decimalType, NoLimit: true, Rule: "at least 0, or -1 (no limit)",
			Help: "maximum growth of the service's memory in MiB (-1: no limit; default: 200)"},
		{Name: "GAUGE", Value: textType, Help: "memory in bytes: a metric of BACKEND_URL/metrics, pid:N, or PromQL (default: backend and nginx)"},
		bystanderSetting,
	},
	"storm": {
		shareOf("OPEN_PERCENT", "percentage of streams that stay open through the storms, 1 to 50 (default: 10)"),
		bystanderSetting,
		atLeast(0, "MIN_RATE", "minimum connects/s if all clients reconnect at once (0: any rate; default: 0)"),
		atLeast(0, "SLOW_MS", "time from dial to headers, in milliseconds, above which a connect is slow (default: 1000)"),
		atLeast(0, "DIAL_MS", "maximum delay of the generator's drops and dials in ms (default: 1000)"),
	},
	"throughput": append([]Setting{
		{Name: "VOLUMES", Value: numbersType, Help: "sizes of the batches in requests, separated by commas"},
		countOf(1, "VOLUME_CONCURRENCY", "concurrent requests of a batch"),
		{Name: "LEVELS", Value: numbersType, Help: "numbers of concurrent requests, separated by commas"},
		overZero("LEVEL_SECONDS", "duration of each level in seconds (below 2: bottleneck not known)"),
		atLeast(0, "WARMUP_SECONDS", "duration of the warm-up, which is not counted, in seconds"),
		overZero("SLOWEST", "lowest expected requests per second; sets the timeout of each batch"),
	}, limitSettings...),
	"upload": {
		countOf(1, "SEQUENCE", "number of sequential uploads"),
		{Name: "SEQUENCE_MB", Value: decimalType, Min: .5e-6, Rule: "at least one byte", Help: "size of each sequential upload in MB"},
		countOf(1, "PARALLEL", "number of parallel uploads"),
		{Name: "PARALLEL_MB", Value: decimalType, Min: .5e-6, Rule: "at least one byte", Help: "size of each parallel upload in MB"},
		overZero("STAGE_SECONDS", "maximum duration of each part, sequential and parallel, in seconds"),
		overZero("TIMEOUT_SECONDS", "maximum duration of an upload in seconds"),
		atLeast(0, "MIN_MB_PER_SECOND", "minimum rate of each part for a pass, in MB/s (0: any rate)"),
	},
	"vanish": {
		shareOf("VANISH_PERCENT", "percentage of streams that vanish, 1 to 50 (default: 20)"),
		{Name: "STEADY_SECONDS", Value: decimalType, Min: 2, Rule: "at least 2, because the gauge is read once a second",
			Help: "seconds with all streams open; must exceed the scrape interval of PROMETHEUS_URL (default: 2)"},
		{Name: "GAUGE", Value: textType, Help: "gauge of open streams: a metric of BACKEND_URL/metrics, or PromQL (default: backend)"},
		bystanderSetting,
	},
}

// ScriptSettings returns the settings that the script of a suite reads. Setting.Parse returns their values; the rows
// have none.
func ScriptSettings(suite string) []Setting { return scriptSettings[suite] }
