package main

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/sse-soak/sse-soak/backend/fault"
)

// setting is one knob: a flag --noop-interval is the environment variable
// NOOP_INTERVAL. The flag wins over the environment, an empty variable is unset.
type setting struct {
	flag  string
	def   string
	unit  string
	help  string
	apply func(*Config, string) error
}

// env is the environment variable of the setting.
func (s setting) env() string {
	return strings.ToUpper(strings.ReplaceAll(s.flag, "-", "_"))
}

// settings lists every knob in the order --help prints them.
var settings = []setting{
	{"listen", "127.0.0.1:8080", "HOST:PORT or unix:/path", "where the service listens",
		func(c *Config, v string) error { c.Listen = v; return checkListen(v) }},
	{"socket-mode", "0660", "octal", "permissions of the unix socket",
		func(c *Config, v string) error {
			n, err := strconv.ParseUint(v, 8, 9)
			c.SocketMode = os.FileMode(n)
			return wrapSyntax(err, "write file permissions in octal, for example 0660")
		}},
	{"noop-interval", "15", "seconds or 500ms", "time between two noops of one stream",
		func(c *Config, v string) error {
			return setDuration(&c.NoopInterval, v, time.Millisecond, 24*time.Hour)
		}},
	{"noop-schedule", scheduleBroadcast, "broadcast|staggered", "all noops at the same instant, or spread evenly over the interval",
		func(c *Config, v string) error {
			c.NoopSchedule = v
			if v != scheduleBroadcast && v != scheduleStaggered {
				return fmt.Errorf("choose %s or %s", scheduleBroadcast, scheduleStaggered)
			}
			return nil
		}},
	{"noop-timestamps", "on", "on|off", "a comment line `: sent=UNIX_MICROSECONDS` inside each event",
		func(c *Config, v string) (err error) { c.NoopTimestamps, err = parseSwitch(v); return err }},
	{"max-connections", "0", "streams", "most streams at a time; 0 takes three quarters of the descriptor limit",
		func(c *Config, v string) error { return setInt(&c.MaxConnections, v, 0, 1<<24) }},
	{"write-timeout", "10", "seconds or 500ms", "a client that leaves a frame unread this long is cut off as slow",
		func(c *Config, v string) error { return setDuration(&c.WriteTimeout, v, time.Millisecond, time.Hour) }},
	{"max-pending", "64", "frames", "a client with more frames waiting than this is cut off as slow",
		func(c *Config, v string) error { return setInt(&c.MaxPending, v, 1, 1<<16) }},
	{"resume-window", "60", "seconds or 500ms", "how long the numbering of a broken stream goes on for Last-Event-ID; 0 is off",
		func(c *Config, v string) error { return setDuration(&c.ResumeWindow, v, 0, 24*time.Hour) }},
	{"header-timeout", "10", "seconds or 500ms", "a request whose headers take longer is closed",
		func(c *Config, v string) error { return setDuration(&c.HeaderTimeout, v, time.Millisecond, time.Hour) }},
	{"idle-timeout", "75", "seconds or 500ms", "a kept-alive connection without a request is closed",
		func(c *Config, v string) error { return setDuration(&c.IdleTimeout, v, time.Millisecond, time.Hour) }},
	{"user-timeout", "20", "seconds or 500ms", "TCP_USER_TIMEOUT: unacknowledged this long, the peer is gone; 0 is the kernel's default",
		func(c *Config, v string) error { return setDuration(&c.UserTimeout, v, 0, time.Hour) }},
	{"backend-token", "", "text", "bearer token for forcedisconnect, send, broadcast, ledger and fault; prefer the variable, flags are visible in ps",
		func(c *Config, v string) error { c.Token = v; return checkToken(v) }},
	{"tls-cert", "", "PEM file", "certificate chain; with tls-key the service speaks TLS",
		func(c *Config, v string) error { c.TLSCert = v; return nil }},
	{"tls-key", "", "PEM file", "private key of tls-cert",
		func(c *Config, v string) error { c.TLSKey = v; return nil }},
	{"tls-client-ca", "", "PEM file", "clients must show a certificate of this authority (mTLS)",
		func(c *Config, v string) error { c.TLSClientCA = v; return nil }},
	{"ledger-keep", "200000", "ids", "closed ids the ledger remembers, the oldest go first",
		func(c *Config, v string) error { return setInt(&c.LedgerKeep, v, 0, 1<<24) }},
	{"ledger-file", "", "file", "the ledger is written here at exit (NDJSON)",
		func(c *Config, v string) error { c.LedgerFile = v; return nil }},
	{"drain-timeout", "0", "seconds or 500ms", "after SIGTERM, with all streams ended, answer the ledger this much longer",
		func(c *Config, v string) error { return setDuration(&c.DrainTimeout, v, 0, time.Hour) }},
	{"admin-listen", "", "HOST:PORT or unix:/path", "loopback listener for /fault; off when empty",
		func(c *Config, v string) error { c.AdminListen = v; return nil }},
	{"server-name", "", "text", "value of the header X-Server of the plain services, to tell servers of a cluster apart",
		func(c *Config, v string) error { c.ServerName = v; return checkToken(v) }},
	{"backend-fault", "", "fault;fault", "faults to inject, see below; dangerous by design",
		func(c *Config, v string) (err error) { c.Faults, err = fault.Parse(v); return err }},
	{"log-level", "info", "debug|info|warn|error", "least level that is logged to stderr",
		func(c *Config, v string) error {
			return wrapSyntax(c.LogLevel.UnmarshalText([]byte(v)), "choose debug, info, warn or error")
		}},
}

// What parseConfig was asked to do.
type action int

const (
	actionRun action = iota
	actionHelp
	actionVersion
	actionHealthcheck
)

// parseConfig reads defaults, environment and flags, in rising order of
// weight. An error is one sentence that names the setting and the remedy.
func parseConfig(args []string, env func(string) (string, bool)) (*Config, action, error) {
	fs := pflag.NewFlagSet("backend", pflag.ContinueOnError)
	fs.Usage = func() {}
	fs.SetOutput(discard{})
	help := fs.BoolP("help", "h", false, "")
	showVersion := fs.Bool("version", false, "")
	healthcheck := fs.Bool("healthcheck", false, "")
	given := make(map[string]*string, len(settings))
	for _, s := range settings {
		given[s.flag] = fs.String(s.flag, s.def, s.help)
	}
	fs.Lookup("noop-timestamps").NoOptDefVal = "on"
	if err := fs.Parse(args); err != nil {
		return nil, 0, fmt.Errorf("%w; --help lists the flags", err)
	}
	if fs.NArg() > 0 {
		return nil, 0, fmt.Errorf("unexpected argument %q; --help lists the flags", fs.Arg(0))
	}
	if *help {
		return nil, actionHelp, nil
	}
	if *showVersion {
		return nil, actionVersion, nil
	}
	cfg := &Config{}
	for _, s := range settings {
		name, value := "--"+s.flag, *given[s.flag]
		if !fs.Changed(s.flag) {
			if v, ok := env(s.env()); ok && v != "" {
				name, value = s.env(), v
			}
		}
		if err := s.apply(cfg, value); err != nil {
			if s.flag == "backend-token" {
				value = "(hidden)"
			}
			return nil, 0, fmt.Errorf("%s=%s: %w", name, value, err)
		}
	}
	if *healthcheck {
		return cfg, actionHealthcheck, nil
	}
	return cfg, actionRun, cfg.check(fileLimit())
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// parseDuration accepts plain seconds (15, 0.5) and Go durations (15s, 500ms).
func parseDuration(v string) (time.Duration, error) {
	if f, err := strconv.ParseFloat(v, 64); err == nil {
		if math.IsNaN(f) || math.Abs(f) > 1e9 {
			return 0, fmt.Errorf("out of range")
		}
		return time.Duration(math.Round(f * float64(time.Second))), nil
	}
	d, err := time.ParseDuration(v)
	return d, wrapSyntax(err, "write seconds (15 or 0.5) or a duration (15s, 500ms)")
}

func setDuration(to *time.Duration, v string, least, most time.Duration) error {
	d, err := parseDuration(v)
	if err != nil {
		return err
	}
	if d < least || d > most {
		return fmt.Errorf("must be between %v and %v", least, most)
	}
	*to = d
	return nil
}

func setInt(to *int, v string, least, most int) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < least || n > most {
		return fmt.Errorf("must be a whole number between %d and %d", least, most)
	}
	*to = n
	return nil
}

func parseSwitch(v string) (bool, error) {
	switch strings.ToLower(v) {
	case "on", "true", "1", "yes":
		return true, nil
	case "off", "false", "0", "no":
		return false, nil
	}
	return false, fmt.Errorf("choose on or off")
}

func wrapSyntax(err error, remedy string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s", remedy)
}

func checkToken(v string) error {
	for i := range len(v) {
		if v[i] <= ' ' || v[i] > '~' {
			return fmt.Errorf("a bearer token is printable ASCII without blanks")
		}
	}
	return nil
}

// checkListen accepts HOST:PORT and unix:/path.
func checkListen(v string) error {
	if path, ok := strings.CutPrefix(v, "unix:"); ok {
		if path == "" || len(path) > 107 {
			return fmt.Errorf("a unix socket path has 1 to 107 bytes")
		}
		return nil
	}
	_, port, err := net.SplitHostPort(v)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	return wrapSyntax(err, "write HOST:PORT or unix:/path, for example 127.0.0.1:8080")
}

// checkLoopback refuses an admin listener that others could reach: whoever
// reaches it can break every stream and kill the process.
func checkLoopback(v string) error {
	if err := checkListen(v); err != nil {
		return fmt.Errorf("ADMIN_LISTEN=%s: %w", v, err)
	}
	if strings.HasPrefix(v, "unix:") {
		return nil
	}
	host, _, _ := net.SplitHostPort(v)
	if addr, err := netip.ParseAddr(host); host == "localhost" || err == nil && addr.IsLoopback() {
		return nil
	}
	return fmt.Errorf("ADMIN_LISTEN=%s: faults are for this host only; listen on a loopback address such as 127.0.0.1:8081", v)
}

func errTooFewDescriptors(streams int, limit uint64) error {
	return fmt.Errorf("MAX_CONNECTIONS=%d does not fit into %d file descriptors; raise the limit (ulimit -n %d) or lower MAX_CONNECTIONS",
		streams, limit, streams+reservedDescriptors+minHTTPConnections)
}

// helpText lists every setting with its variable, unit and default.
func helpText() string {
	var b strings.Builder
	b.WriteString("backend holds server-sent event streams and sends each a numbered noop every NOOP_INTERVAL.\n\n" +
		"Usage: backend [flags]     every flag is also an environment variable; the flag wins\n\n")
	for _, s := range settings {
		def := s.def
		if def == "" {
			def = "none"
		}
		fmt.Fprintf(&b, "  --%-16s %-16s (%s; default %s)\n        %s\n", s.flag, s.env(), s.unit, def, s.help)
	}
	b.WriteString("  --healthcheck      ask the service at LISTEN whether it is ready; exit 0 if it is, else 1\n" +
		"  --version          print the version\n  --help             print this\n\n" + fault.Help)
	return b.String()
}
