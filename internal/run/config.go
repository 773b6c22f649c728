package run

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/ci"
	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/proxy"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/run/target"
	"github.com/sse-soak/sse-soak/internal/secret"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/suite"
)

// A Config has the settings of a run from the command line.
type Config struct {
	Suite    suite.Suite
	Plan     plan.Plan         // Run fills in missing settings, such as TestID, Prefix, ConnectionsPerVU and RunID
	Settings map[string]string // settings of the suite's script that the user set, by name
	Script   string            // path of a k6 script that replaces the suite's

	plan.Local
	Runner   string // "K/N": this machine runs only the Kth of N runners; "": all
	Continue bool   // runner K ended early; this machine runs its clients until the end of the run

	Backends   int    // number of backends to start here if the plan has no BACKEND_URL
	NoNginx    bool   // connect to the backends directly
	ClusterURL string // the cluster that the suite compares with the target; "": start one here

	Kubernetes Kubernetes
	CI         ci.Systems // CI systems that get the verdict
	Terminal   report.TerminalOptions

	OpenURL func(url string) error // opens a page in a browser; nil: the page is not opened

	Executable string    // path of soak, which runs the control group's reference server; "": there is no such server
	Version    string    // of soak
	Commit     string    // of the build, with the suffix +dirty if files had changed; "": unknown
	Variables  []string  // settings from environment variables, as NAME=value
	Stdout     io.Writer // the plan and the verdict; warnings and progress go to stderr
}

// commandLine returns the command line, preceded by the variables that are settings, without secrets.
func (c *Config) commandLine(args []string, secrets *secret.Values) []string {
	if len(c.Variables) > 0 {
		args = slices.Concat([]string{"env"}, c.Variables, args)
	}
	args = secret.Command(args)
	for i, arg := range args {
		args[i] = string(secrets.Replace([]byte(arg), secret.Redacted))
	}
	return args
}

// A UsageError reports an invalid flag or variable, with the remedy.
type UsageError struct{ Err error }

func (e UsageError) Error() string { return e.Err.Error() }
func (e UsageError) Unwrap() error { return e.Err }

// checkLocal checks the settings that are not part of the plan. It also replaces s.Live with the address to listen on.
func (s *session) checkLocal() error {
	if s.runnerNumber > 0 && s.CI.Any() {
		return errors.New("--github and --junit cannot be combined with --runner; pass them to `soak merge`")
	}
	if s.On != "local" && s.On != "k8s" {
		return fmt.Errorf("--on must be local or k8s, got %q", s.On)
	}
	if !slices.Contains([]string{"", plan.PinAuto, plan.PinNone}, s.Pin) {
		return fmt.Errorf("--pin must be %[2]s or %[3]s, got %[1]q", s.Pin, plan.PinAuto, plan.PinNone)
	}
	s.Live = liveAddress(s.Live)
	if s.Progress != "" && s.Progress != plan.ProgressLine && s.Progress != plan.ProgressFull {
		return fmt.Errorf("--progress must be %[2]s or %[3]s, got %[1]q", s.Progress, plan.ProgressLine, plan.ProgressFull)
	}
	return cmp.Or(checkListen("--live", s.Live), checkListen("--control-listen", s.ControlListen))
}

func (s *session) complete(now time.Time) (err error) {
	if err := cmp.Or(s.parsePart(), s.checkContinue()); err != nil {
		return err
	}
	if s.startAt, err = parseStart(s.StartAt, now); err != nil {
		return err
	}
	if s.actions, err = plan.ParseActions(s.At); err != nil {
		return errors.New(s.secrets.String(err.Error()))
	}
	if err := cmp.Or(plan.CheckVariables(s.AtEnv), s.checkLocal(), s.checkURLs(), s.trust()); err != nil {
		return err
	}
	if s.Suite.Plan.BySettings {
		err = s.completePlan()
	} else {
		err = s.completeSettings()
	}
	if err != nil {
		return err
	}
	if err := resources.CheckGauge(s.gauge(), os.Getenv("PROMETHEUS_URL")); err != nil {
		return err
	}
	if s.Plan.TestID == "" {
		s.Plan.TestID, s.generatedID = results.NewTestID(s.Out, now), true
	}
	s.Plan.Suite = s.Suite.InPlan()
	if s.isModule {
		s.setMarker()
		err = s.checkService() // describe checks the plan after it has loaded the description
	} else if err = s.Suite.Check(s.Plan); s.Suite.Plan.BySettings {
		s.Plan.EndTimeoutS = s.Plan.EndTimeout().Seconds()
	}
	s.Plan.RunID = shard.NewID()
	return cmp.Or(err, s.checkBackends())
}

func (s *session) trust() error {
	switch {
	case s.On == "k8s" && (s.CA != "" || s.Insecure):
		return errors.New("--ca and --insecure are for runners on this machine; on Kubernetes, set SSL_CERT_FILE in the overlay")
	case s.Insecure:
		s.warn("TLS certificates are not verified (--insecure)")
	}
	return proxy.Trust(s.CA, s.Insecure)
}

// checkURLs checks and normalizes the URLs, because a merge compares them as text.
func (s *session) checkURLs() (err error) {
	normalize := plan.NormalURLs
	if !s.Suite.Plan.BySettings && s.Plan.BackendURL != "" {
		normalize = plan.NormalURL // the script accepts one URL
	}
	if s.Plan.BackendURL, err = normalize("BACKEND_URL", s.Plan.BackendURL); err == nil && s.ClusterURL != "" {
		s.ClusterURL, err = plan.NormalURL("CLUSTER_URL", s.ClusterURL)
	}
	return err
}

func (s *session) checkBackends() error {
	switch {
	case len(s.Plan.BackendURLs()) > 1 && s.On == "k8s":
		return errors.New("BACKEND_URL must have one URL on Kubernetes, such as the URL of a Service or a load balancer")
	case s.Backends < 1 || s.Backends > s.Plan.Runners:
		return fmt.Errorf("--backends must be from 1 to the number of runners (%[2]d), got %[1]d", s.Backends, s.Plan.Runners)
	case s.Backends > 1 && s.Plan.BackendURL != "":
		return errors.New("--backends cannot be combined with BACKEND_URL; remove one of them")
	}
	return nil
}

// completePlan checks a plan that is known before the script is loaded, and fills in its missing settings.
func (s *session) completePlan() error {
	p := &s.Plan
	if p.Prefix == "" {
		p.Prefix = s.Suite.Name + "-"
	}
	if p.ConnectionsPerVU == 0 {
		p.ConnectionsPerVU = p.StreamsPerVU()
	}
	p.Reconnect = p.Reconnect || p.HasCuts() // clients must reconnect after a disconnect
	if p.MaxOutageS == 0 {
		return errors.New("MAX_OUTAGE must be positive or -1 (no limit), got 0")
	}
	if p.BackWithinS == 0 {
		return errors.New("BACK_WITHIN must be positive or -1 (no limit), got 0")
	}
	if s.isModule {
		return s.completeService()
	}
	s.interval = p.Interval()
	return nil
}

// completeSettings fills in the settings that the target of a suite needs before the script declares its plan.
func (s *session) completeSettings() error {
	if name := s.setting("SERVICE", plan.NoopService); s.Suite.Target.Streams && name != plan.NoopService {
		return fmt.Errorf("SERVICE must be %s for %s, got %q; use `soak run` for other services", plan.NoopService, s.Suite.Name, name)
	}
	if s.Suite.Target.Streams { // backend and script use the same interval, and soak finds the ids of the clients by their prefix
		const defaultInterval = "1" // second
		text := s.setting("NOOP_INTERVAL", defaultInterval)
		interval, err := plan.ParseInterval(text)
		if err != nil {
			return err
		}
		s.interval = interval
		s.Plan.Prefix = s.setting("PREFIX", s.Suite.Name+"-")
		s.Settings["NOOP_INTERVAL"], s.Settings["PREFIX"] = text, s.Plan.Prefix
	}
	if s.Suite.Target.Kind == suite.Model {
		return s.completeFinite()
	}
	if s.Suite.Target.Kind == suite.Cluster { // the script reports an invalid size
		s.clusterSize, _ = strconv.Atoi(s.setting("CLUSTER_SIZE", "3"))
	}
	if s.Suite.Target.Kind == suite.MutualTLS {
		folder, err := filepath.Abs(s.setting("CERTS", "certs"))
		if err != nil {
			return err
		}
		s.certificates = target.Certificates(folder)
	}
	return nil
}

// gauge returns the value of GAUGE, or "" if GAUGE is not set or the suite lacks this setting. Without GAUGE, the suite
// uses the metrics of our backend.
func (s *session) gauge() string {
	if !slices.ContainsFunc(s.Suite.Settings(), func(setting plan.Setting) bool { return setting.Name == "GAUGE" }) {
		return ""
	}
	return s.setting("GAUGE", "")
}

// setting returns the value that the script gets for a name: from a flag, else from the environment, else fallback.
func (s *session) setting(name, fallback string) string {
	if value, ok := s.Settings[name]; ok {
		return value
	}
	return cmp.Or(os.Getenv(name), fallback)
}

// parsePart parses --runner K/N, and sets runnerNumber and Plan.Runners.
func (s *session) parsePart() error {
	if s.Runner == "" {
		return nil
	}
	index, total, ok := strings.Cut(s.Runner, "/")
	k, kErr := strconv.Atoi(index)
	n, nErr := strconv.Atoi(total)
	switch {
	case !ok || kErr != nil || nErr != nil || k < 1 || k > n:
		return fmt.Errorf("--runner must be K/N for the Kth of N runners, such as 1/2, got %q", s.Runner)
	case s.Plan.TestID == "":
		return errors.New("--runner requires --testid, which all parts of the run share")
	case s.Plan.BackendURL == "":
		return errors.New("--runner requires BACKEND_URL, the service that all machines test")
	case n > 1 && s.Suite.Runners.OneMachine != "":
		return fmt.Errorf("--runner cannot be combined with %s, because %s; run it on one machine", s.Suite.Name, s.Suite.Runners.OneMachine)
	case s.Suite.Target.Kind == suite.Cluster && s.ClusterURL == "":
		return errors.New("--runner requires CLUSTER_URL, the cluster that all machines test")
	}
	s.runnerNumber, s.Plan.Runners = k, n
	return nil
}

// parseStart parses --start-at: an RFC 3339 time, or the next HH:MM or HH:MM:SS in UTC.
func parseStart(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		if at.Before(now) {
			return at, fmt.Errorf("--start-at must be in the future, got %s, which was %s ago", text, now.Sub(at).Round(time.Second))
		}
		return at, nil
	}
	for _, layout := range []string{"15:04", "15:04:05"} {
		at, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		year, month, day := now.UTC().Date()
		at = at.AddDate(year, int(month)-1, day-1)
		if at.Before(now) {
			at = at.AddDate(0, 0, 1)
		}
		return at, nil
	}
	return time.Time{}, fmt.Errorf("--start-at must be HH:MM or HH:MM:SS in UTC, or an RFC 3339 time such as 2026-01-31T15:04:05Z, got %q", text)
}
