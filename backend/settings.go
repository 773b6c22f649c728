package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
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

// settings returns all settings in the order of --help, and sets each field of c to its default. A flag such as
// --noop-interval overrides the variable NOOP_INTERVAL. An empty variable is ignored.
func (c *Config) settings() *pflag.FlagSet {
	fs, add := newSettings("backend")
	add("listen", "127.0.0.1:8080", "HOST:PORT or unix:/path", "address to listen on", parseText(&c.Listen, checkListen))
	add("socket-mode", "0660", "octal", "permissions of the unix socket", fileMode(&c.SocketMode))
	add("noop-interval", "15", "seconds or 500ms", "time between two noops of one stream", duration(&c.NoopInterval, time.Millisecond, 24*time.Hour))
	add("noop-schedule", scheduleBroadcast, "broadcast|staggered", "all noops at the same instant, or spread evenly over the interval", parseText(&c.NoopSchedule, checkSchedule))
	add("noop-timestamps", "on", "on|off", "a comment line `: sent=UNIX_MICROSECONDS` inside each event", onOff(&c.NoopTimestamps))
	add("max-connections", "0", "streams", "maximum number of open streams; 0: as many as the file descriptors allow", parseInt(&c.MaxConnections, 0, 1<<24))
	add("max-plain-connections", "0", "connections", "maximum number of connections without a stream; 0: at most 4096", parseInt(&c.MaxPlain, 0, 1<<24))
	add("write-timeout", "10", "seconds or 500ms", "maximum wait behind a full socket buffer; a slower client is disconnected", duration(&c.WriteTimeout, time.Millisecond, time.Hour))
	add("max-pending", "64", "events", "maximum backlog behind a full socket buffer; a client with more is disconnected", parseInt(&c.MaxPending, 1, 1<<16))
	add("resume-window", "60", "seconds or 500ms", "time after a disconnect in which Last-Event-ID resumes the numbering; 0: none", duration(&c.ResumeWindow, 0, 24*time.Hour))
	add("header-timeout", "10", "seconds or 500ms", "maximum time for the headers of a request", duration(&c.HeaderTimeout, time.Millisecond, time.Hour))
	add("idle-timeout", "75", "seconds or 500ms", "time after which a connection without a request is closed", duration(&c.IdleTimeout, time.Millisecond, time.Hour))
	add("user-timeout", "20", "seconds or 500ms", "TCP_USER_TIMEOUT: maximum time without an acknowledgment; 0: kernel default", duration(&c.UserTimeout, 0, time.Hour))
	add("backend-token", "", "text", "bearer token for /fault and /event/{forcedisconnect,send,broadcast,ledger}", parseText(&c.Token, checkHeaderValue))
	add("tls-cert", "", "PEM file", "certificate chain; with tls-key, the service uses TLS", parseText(&c.TLSCert))
	add("tls-key", "", "PEM file", "private key of tls-cert", parseText(&c.TLSKey))
	add("tls-client-ca", "", "PEM file", "certificate authority that client certificates must come from (mTLS)", parseText(&c.TLSClientCA))
	add("ledger-keep", "200000", "ids", "maximum number of ledger rows of ended numberings; the oldest are removed first", parseInt(&c.LedgerKeep, 0, 1<<24))
	add("ledger-file", "", "file", "file to write the ledger to at exit (NDJSON)", parseText(&c.LedgerFile))
	add("drain-timeout", "0", "seconds or 500ms", "time for which the ledger is still served after all streams have ended", duration(&c.DrainTimeout, 0, time.Hour))
	add("admin-listen", "", "HOST:PORT or unix:/path", "loopback address that serves /fault; empty: off", parseText(&c.AdminListen, checkLoopback))
	add("server-name", "", "text", "value of X-Server in responses of forcedisconnect, /default/ and /httpbin/", parseText(&c.ServerName, checkHeaderValue))
	add("backend-fault", "", "fault;fault", "faults to inject (see below); for tests only", func(v string) (err error) { c.Faults, err = fault.Parse(v); return err })
	add("log-level", "info", "debug|info|warn|error", "minimum level of the log on stderr",
		func(v string) error {
			return remedy(c.LogLevel.UnmarshalText([]byte(v)), "choose debug, info, warn or error")
		})
	fs.Lookup("noop-timestamps").NoOptDefVal = "on"
	return fs
}

// newSettings returns an empty table of settings, and a function that adds a setting to it and sets the default.
func newSettings(name string) (fs *pflag.FlagSet, add func(name, def, unit, help string, set func(string) error)) {
	fs = pflag.NewFlagSet(name, pflag.ContinueOnError)
	fs.SortFlags = false
	return fs, func(name, def, unit, help string, set func(string) error) {
		_ = set(def) // the tests check that each default is valid
		fs.VarPF(setting{unit, set}, name, "", help).DefValue = def
	}
}

func variable(flag string) string { return strings.ToUpper(strings.ReplaceAll(flag, "-", "_")) }

// A setting is one setting as a pflag.Value. set parses a value and stores it.
type setting struct {
	unit string
	set  func(string) error
}

func (s setting) Set(v string) error { return s.set(v) }
func (s setting) Type() string       { return s.unit }
func (setting) String() string       { return "" }

// parseConfig reads and checks the configuration. verb is help, version or healthcheck if that flag is set, and the
// backend then does not start the service. Otherwise verb is "". cfg is nil for help and version. For healthcheck the
// dependencies between settings are not checked.
func parseConfig(args []string, env func(string) (string, bool)) (cfg *Config, verb string, err error) {
	cfg = &Config{}
	if verb, err = parseSettings(cfg.settings(), variable, args, env); err != nil {
		return nil, "", err
	}
	switch verb {
	case "help", "version":
		return nil, verb, nil
	case "":
		err = cfg.check(fileLimit())
	}
	return cfg, verb, err
}

// parseSettings reads settings from flags and variables. verb is as in parseConfig. An error is one sentence that
// names the setting, and states a rule or a remedy.
func parseSettings(
	fs *pflag.FlagSet, variable func(string) string, args []string, env func(string) (string, bool),
) (verb string, err error) {
	fs.Usage = func() {}
	fs.BoolFuncP("help", "h", "", func(string) error { verb = "help"; return nil })
	fs.BoolFunc("version", "", func(string) error { verb = cmp.Or(verb, "version"); return nil })
	fs.BoolFunc("healthcheck", "", func(string) error { verb = cmp.Or(verb, "healthcheck"); return nil })
	err = fs.Parse(args)
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &invalid):
		return "", invalidSetting("--"+invalid.GetFlag().Name, invalid.GetValue(), invalid.Unwrap())
	case err != nil:
		return "", fmt.Errorf("%w; use --help to list the flags", err)
	case fs.NArg() > 0:
		return "", fmt.Errorf("unexpected argument %q; remove it, or use --help to list the flags", fs.Arg(0))
	case verb == "help", verb == "version":
		return verb, nil
	}
	fs.VisitAll(func(f *pflag.Flag) {
		if v, _ := env(variable(f.Name)); v != "" && !f.Changed && err == nil {
			if invalid := f.Value.Set(v); invalid != nil {
				err = invalidSetting(variable(f.Name), v, invalid)
			}
		}
	})
	return verb, err
}

// invalidSetting returns an error that names a setting and its value. It hides the value of a token.
func invalidSetting(name, value string, reason error) error {
	if strings.HasSuffix(strings.ToLower(name), "token") {
		value = "(hidden)"
	}
	return fmt.Errorf("%s=%s: %w", name, value, reason)
}

func helpText() string {
	return "backend serves event streams, and sends one numbered message, a noop, per NOOP_INTERVAL on each stream.\n\n" +
		"Usage: backend [flags]     each flag is also an environment variable; a flag takes precedence\n" +
		"       backend model       serves the APIs of a language model (backend model --help)\n\n" +
		"Set BACKEND_TOKEN instead of --backend-token, because ps shows flags.\n\n" +
		settingsText(new(Config).settings(), variable) +
		"  --healthcheck      check that the service at LISTEN is ready (with TLS_CLIENT_CA: that it responds);\n                     exit code 0 on success, 1 on failure\n" +
		"  --version          print the version\n  --help             print this help\n\n" + fault.Help
}

func settingsText(fs *pflag.FlagSet, variable func(string) string) string {
	var b strings.Builder
	fs.VisitAll(func(f *pflag.Flag) {
		fmt.Fprintf(&b, "  --%-16s %-16s (%s; default %s)\n        %s\n",
			f.Name, variable(f.Name), f.Value.Type(), cmp.Or(f.DefValue, "none"), f.Usage)
	})
	return b.String()
}

func parseText(value *string, checks ...func(string) error) func(string) error {
	return func(v string) error {
		*value = v
		for _, check := range checks {
			if err := check(v); err != nil {
				return err
			}
		}
		return nil
	}
}

// duration returns a parser that accepts seconds (15, 0.5) and Go durations (15s, 500ms) within bounds.
func duration(value *time.Duration, minimum, maximum time.Duration) func(string) error {
	return func(v string) error {
		d, err := time.ParseDuration(v)
		if seconds, notSeconds := strconv.ParseFloat(v, 64); notSeconds == nil {
			d, err = time.Duration(math.Round(min(max(seconds, -1e9), 1e9)*float64(time.Second))), nil
			if math.IsNaN(seconds) {
				return errors.New("must be a number of seconds")
			}
		}
		if err == nil && (d < minimum || d > maximum) {
			return fmt.Errorf("must be between %v and %v", minimum, maximum)
		}
		*value = d
		return remedy(err, "write seconds (15 or 0.5) or a duration (15s, 500ms)")
	}
}

func parseInt(value *int, minimum, maximum int) func(string) error {
	return func(v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < minimum || n > maximum {
			return fmt.Errorf("must be a whole number between %d and %d", minimum, maximum)
		}
		*value = n
		return nil
	}
}

func onOff(value *bool) func(string) error {
	return func(v string) error {
		switch strings.ToLower(v) {
		case "on", "true", "1", "yes":
			*value = true
		case "off", "false", "0", "no":
			*value = false
		default:
			return errors.New("choose on or off")
		}
		return nil
	}
}

func fileMode(value *os.FileMode) func(string) error {
	return func(v string) error {
		n, err := strconv.ParseUint(v, 8, 9)
		*value = os.FileMode(n)
		return remedy(err, "write file permissions in octal, for example 0660")
	}
}

// remedy replaces the error of a parser with a sentence about the correct syntax. It returns nil if err is nil.
func remedy(err error, sentence string) error {
	if err == nil {
		return nil
	}
	return errors.New(sentence)
}

func checkSchedule(v string) error {
	if v != scheduleBroadcast && v != scheduleStaggered {
		return fmt.Errorf("choose %s or %s", scheduleBroadcast, scheduleStaggered)
	}
	return nil
}

// checkHeaderValue accepts text that can be the value of a header: printable ASCII without spaces, or "".
func checkHeaderValue(v string) error {
	if strings.ContainsFunc(v, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("must be printable ASCII without spaces")
	}
	return nil
}

func checkListen(v string) error {
	if path, ok := strings.CutPrefix(v, "unix:"); ok {
		if path == "" || len(path) > 107 {
			return errors.New("the path of a unix socket must have 1 to 107 bytes")
		}
		return nil
	}
	_, port, err := net.SplitHostPort(v)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	return remedy(err, "write HOST:PORT or unix:/path, for example 127.0.0.1:8080")
}

// checkLoopback refuses an admin address that other hosts could reach, because its clients can kill the process.
func checkLoopback(v string) error {
	if v == "" {
		return nil
	}
	if err := checkListen(v); err != nil || strings.HasPrefix(v, "unix:") {
		return err
	}
	host, _, _ := net.SplitHostPort(v)
	if addr, err := netip.ParseAddr(host); host == "localhost" || err == nil && addr.IsLoopback() {
		return nil
	}
	return errors.New("must be a loopback address, such as 127.0.0.1:8081, because its clients can inject faults")
}

const (
	scheduleBroadcast = "broadcast" // all ids at the same instant: the worst case
	scheduleStaggered = "staggered" // ids spread evenly over the interval
)

// A Config holds the settings of the backend. parseConfig sets and checks them; settings describes each.
type Config struct {
	Listen         string
	SocketMode     os.FileMode
	AdminListen    string
	ServerName     string
	TLSCert        string
	TLSKey         string
	TLSClientCA    string
	NoopInterval   time.Duration
	NoopSchedule   string
	NoopTimestamps bool
	MaxConnections int
	MaxPlain       int
	WriteTimeout   time.Duration
	MaxPending     int
	ResumeWindow   time.Duration
	HeaderTimeout  time.Duration
	IdleTimeout    time.Duration
	UserTimeout    time.Duration
	Token          string
	Faults         []fault.Fault
	LedgerKeep     int
	LedgerFile     string
	DrainTimeout   time.Duration
	LogLevel       slog.Level

	// httpConnections limits the connections that are not (yet) event streams. shareDescriptors sets it.
	httpConnections int
}

// reservedDescriptors is the number of descriptors for the process itself: logs, epoll, listeners, ledger file.
const reservedDescriptors = 64

// Limits on the number of connections that are not streams. They apply unless MAX_PLAIN_CONNECTIONS is set.
const (
	minHTTPConnections = 64
	maxHTTPConnections = 4096
)

func (c *Config) check(fileLimit uint64) error {
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return errors.New("TLS_CERT and TLS_KEY require each other; set both or neither")
	}
	if c.TLSClientCA != "" && c.TLSCert == "" {
		return errors.New("TLS_CLIENT_CA needs TLS_CERT and TLS_KEY; set both, or remove TLS_CLIENT_CA")
	}
	return c.shareDescriptors(fileLimit)
}

// shareDescriptors divides the descriptors between streams and other connections. Many connections or slow requests
// therefore cannot use the descriptors that are reserved for streams. It sets httpConnections, and MaxConnections if that is 0.
func (c *Config) shareDescriptors(fileLimit uint64) error {
	limit := int(min(fileLimit, 1<<24)) - reservedDescriptors
	if c.MaxConnections == 0 {
		c.MaxConnections = max(1, limit-cmp.Or(c.MaxPlain, max(minHTTPConnections, min(limit/4, maxHTTPConnections))))
	}
	c.httpConnections = min(limit-c.MaxConnections, cmp.Or(c.MaxPlain, maxHTTPConnections))
	if minConnections := cmp.Or(c.MaxPlain, minHTTPConnections); c.httpConnections < minConnections {
		return fmt.Errorf("MAX_CONNECTIONS=%d and %d connections without a stream do not fit into %d file descriptors; raise the limit (ulimit -n %d) or lower MAX_CONNECTIONS or MAX_PLAIN_CONNECTIONS",
			c.MaxConnections, minConnections, fileLimit, c.MaxConnections+reservedDescriptors+minConnections)
	}
	return nil
}
