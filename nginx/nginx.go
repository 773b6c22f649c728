// Package nginx renders the configuration of the nginx in front of the backend, for a run on this machine and for the
// stack of compose.yaml.
package nginx

import (
	_ "embed" // the template
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"text/template"
	"time"
)

//go:embed nginx.conf.tmpl
var source string

var configTemplate = template.Must(template.New("nginx.conf").Funcs(template.FuncMap{
	"param":  param,
	"quoted": regexp.QuoteMeta,
	"inc":    func(n int) int { return n + 1 },
}).Parse(source))

// param joins the parts of a parameter and quotes it, because the path of a folder may contain spaces and semicolons.
func param(parts ...string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(strings.Join(parts, "")) + `"`
}

// Config has the settings of one nginx.
type Config struct {
	Dir      string // folder for the pid file and temporary files
	ErrorLog string
	Listen   string   // address:port, or only the port
	Sockets  []string // sockets of the backends; all requests with the same id go to one of them
	Root     bool     // root starts nginx
	Workers  int      // 0: one per core
	// Connections is the number of streams.
	Connections int
	// NoopInterval is the interval of noops, the longest regular silence of a stream.
	NoopInterval time.Duration
	// IdleTimeout is the idle timeout of a stream. 0 means four noop intervals, but at least one minute.
	IdleTimeout time.Duration
	// Site is nil if only the run itself can reach nginx.
	Site *Site
}

// Site has the settings of an nginx that is reachable from other machines and also serves Grafana and Prometheus.
type Site struct {
	AccessLog string
	// Token is the token of the backend, with the characters of RFC 6750. Restricted routes require it.
	Token string
	// OpenDisconnect allows requests without a token to end a stream, because the original test sends none.
	OpenDisconnect bool
	Internal       string // address:port of stub_status and metrics; a loopback address, because they are not protected
	Grafana        string // address:port
	Prometheus     string // address:port
	PasswordFile   string // htpasswd file with the users of Prometheus
	TLSListen      string // address:port, or only the port; "" without TLS
	Certificate    string
	Key            string
}

// spare is the number of connections that a worker needs in addition to the connections of streams, for example for
// plain requests. It is also the number of files that a worker needs in addition to its connections, for example logs.
const spare = 512

// WorkerConnections returns the maximum number of connections of a worker: two per stream, and the spare ones.
func (c Config) WorkerConnections() int { return 2*c.Connections + spare }

// Files returns a worker's limit on open files.
func (c Config) Files() int { return c.WorkerConnections() + spare }

// ReadTimeout returns the idle timeout in seconds: IdleTimeout if it is set, otherwise four noop intervals, but at
// least one minute, which is nginx's default.
func (c Config) ReadTimeout() int {
	if c.IdleTimeout > 0 {
		return max(1, int(c.IdleTimeout/time.Second))
	}
	return max(60, int(4*c.NoopInterval/time.Second))
}

// Cluster reports whether there are several backends.
func (c Config) Cluster() bool { return len(c.Sockets) > 1 }

// bearer matches a token (RFC 6750). None of its characters has a special meaning to nginx inside quotes.
var bearer = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)

// Render writes the configuration file.
func Render(w io.Writer, c Config) (err error) {
	if c.Site != nil && !bearer.MatchString(c.Site.Token) {
		err = errors.New("BACKEND_TOKEN must consist of A-Z a-z 0-9 . _ ~ + / - and may end with =")
	} else {
		err = configTemplate.Execute(w, c)
	}
	if err != nil {
		return fmt.Errorf("render the configuration of nginx: %w", err)
	}
	return nil
}
