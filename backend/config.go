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

const (
	scheduleBroadcast = "broadcast" // all ids at the same instant: the worst case
	scheduleStaggered = "staggered" // ids spread evenly over the interval
)

// A Config holds the settings of the backend. parseConfig sets and checks them; settings.go describes each.
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

// shareDescriptors divides the descriptors between streams and other connections. Many connects or slow requests then
// cannot exhaust the descriptors of open streams. It sets httpConnections, and MaxConnections if that is 0.
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
