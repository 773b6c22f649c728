package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/sse-soak/sse-soak/backend/fault"
)

// Schedules of the noops.
const (
	scheduleBroadcast = "broadcast" // all ids at the same instant: the worst case
	scheduleStaggered = "staggered" // ids spread evenly over the interval
)

// A Config has the settings of the backend. parseConfig fills and checks it; settings.go has meaning, unit and
// default of each field.
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

	// httpConnections bounds the connections that are not (yet) event streams: the descriptor limit minus
	// MaxConnections.
	httpConnections int
}

// Descriptors kept for the process itself: logs, epoll, listeners, ledger file.
const reservedDescriptors = 64

// Minimum number of descriptors for connections that are not streams, and the maximum unless MAX_PLAIN_CONNECTIONS is
// set.
const (
	minHTTPConnections = 64
	maxHTTPConnections = 4096
)

// check validates settings that depend on each other.
func (c *Config) check(fileLimit uint64) error {
	if c.Listen == "" {
		return errors.New("LISTEN is empty; set it to HOST:PORT or unix:/path, for example LISTEN=127.0.0.1:8080")
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return errors.New("TLS_CERT and TLS_KEY belong together; set both or neither")
	}
	if c.TLSClientCA != "" && c.TLSCert == "" {
		return errors.New("TLS_CLIENT_CA needs TLS_CERT and TLS_KEY; client certificates exist under TLS only")
	}
	return c.shareDescriptors(fileLimit)
}

// shareDescriptors divides the process's descriptors between streams and plain
// requests, so that neither a flood of connects nor a slowloris can take the
// descriptors that open streams need.
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
