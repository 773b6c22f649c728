// Package nginx renders the configuration of the nginx that stands in front of the backend.
package nginx

import (
	_ "embed" // the template
	"fmt"
	"io"
	"text/template"
	"time"
)

//go:embed nginx.conf.tmpl
var source string

var parsed = template.Must(template.New("nginx.conf").Parse(source))

// Config is what differs from run to run.
type Config struct {
	Dir      string // of its own: pid file and temporary files
	ErrorLog string
	Listen   string // address:port
	Socket   string // of the backend
	Root     bool   // nginx is started by root
	Workers  int
	// Connections is how many streams are to be held.
	Connections int
	// NoopInterval is the longest silence that is in order.
	NoopInterval time.Duration
}

// spare is what a worker needs beside streams: requests, the log, its listening socket.
const spare = 512

// WorkerConnections is enough for one worker to hold all streams, two sides each.
func (c Config) WorkerConnections() int { return 2*c.Connections + spare }

// Files is the limit of open files that a worker asks for.
func (c Config) Files() int { return c.WorkerConnections() + spare }

// Backlog is the accept queue; the kernel caps it at net.core.somaxconn.
func (c Config) Backlog() int { return 8192 }

// ReadTimeout in seconds is four silent intervals, and never under the minute that is nginx's
// own default.
func (c Config) ReadTimeout() int { return max(60, int(4*c.NoopInterval/time.Second)) }

// Render writes the configuration file.
func Render(w io.Writer, c Config) error {
	if err := parsed.Execute(w, c); err != nil {
		return fmt.Errorf("render the configuration of nginx: %w", err)
	}
	return nil
}
