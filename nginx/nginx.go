// Package nginx renders the configuration of the nginx that stands in front of the backend: one
// template for a run on this machine and for the stack of compose.yaml.
package nginx

import (
	_ "embed" // the template
	"errors"
	"fmt"
	"io"
	"regexp"
	"text/template"
	"time"
)

//go:embed nginx.conf.tmpl
var source string

var configTemplate = template.Must(template.New("nginx.conf").Funcs(template.FuncMap{
	"quoted": regexp.QuoteMeta,
	"inc":    func(n int) int { return n + 1 },
}).Parse(source))

// Config is what differs from run to run.
type Config struct {
	Dir      string // of its own: pid file and temporary files
	ErrorLog string
	Listen   string   // address:port
	Sockets  []string // of the backends: each id keeps to one of them
	Root     bool     // nginx is started by root
	Workers  int      // 0: one per core
	// Connections is how many streams are to be held.
	Connections int
	// NoopInterval is the longest silence that is in order.
	NoopInterval time.Duration
	// Silence is how long a stream may be silent before nginx cuts it; 0: four intervals, and
	// never under a minute.
	Silence time.Duration
	// Site is nil if only the run itself can reach nginx.
	Site *Site
}

// Site is what an nginx needs that others can reach, and that has neighbours.
type Site struct {
	AccessLog string
	// Token is the backend's, of the characters of RFC 6750. Whatever is not for everyone asks for it.
	Token string
	// OpenDisconnect lets everyone end a stream, as the original test does.
	OpenDisconnect bool
	Internal       string // address:port of stub_status and metrics; loopback, it is not protected
	Grafana        string // address:port
	Prometheus     string // address:port
	PasswordFile   string // who may see Prometheus
	TLSListen      string // address:port, "" without TLS
	Certificate    string
	Key            string
}

// spare is the number of connections of a worker in addition to streams: requests, the log, its listening socket.
const spare = 512

// WorkerConnections is enough for one worker to hold all streams, two sides each.
func (c Config) WorkerConnections() int { return 2*c.Connections + spare }

// Files is the limit of open files that a worker asks for.
func (c Config) Files() int { return c.WorkerConnections() + spare }

// ReadTimeout in seconds is Silence, or else four silent intervals, and then never under the
// minute that is nginx's own default.
func (c Config) ReadTimeout() int {
	if c.Silence > 0 {
		return max(1, int(c.Silence/time.Second))
	}
	return max(60, int(4*c.NoopInterval/time.Second))
}

// Cluster reports whether there are several backends.
func (c Config) Cluster() bool { return len(c.Sockets) > 1 }

// bearer is the syntax of a token, RFC 6750. Nothing in it means anything to nginx inside quotes.
var bearer = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)

// Render writes the configuration file.
func Render(w io.Writer, c Config) (err error) {
	if c.Site != nil && !bearer.MatchString(c.Site.Token) {
		err = errors.New("a token for nginx is made of A-Z a-z 0-9 . _ ~ + / - and may end with =")
	} else {
		err = configTemplate.Execute(w, c)
	}
	if err != nil {
		return fmt.Errorf("render the configuration of nginx: %w", err)
	}
	return nil
}
