package runners

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"
)

// RemoteWrite is k6's output for Prometheus. K6_PROMETHEUS_RW_SERVER_URL, k6's own variable, enables it.
const RemoteWrite = "experimental-prometheus-rw"

// RemoteWritePrefix is the prefix of k6's variables for that output.
const RemoteWritePrefix = "K6_PROMETHEUS_RW_"

const (
	remoteWriteURL    = RemoteWritePrefix + "SERVER_URL"
	remoteWriteUser   = RemoteWritePrefix + "USERNAME"
	remoteWriteSecret = RemoteWritePrefix + "PASSWORD"
	remoteWriteStats  = RemoteWritePrefix + "TREND_STATS"
)

// trendStats are the statistics that the dashboards need.
const trendStats = "p(50),p(99),max"

// remoteWriteFiles are the variables that name files, which pods do not have.
var remoteWriteFiles = []string{RemoteWritePrefix + "CLIENT_CERTIFICATE", RemoteWritePrefix + "CLIENT_CERTIFICATE_KEY"}

// HasRemoteWrite reports whether the runners send metrics to Prometheus.
func HasRemoteWrite() bool { return os.Getenv(remoteWriteURL) != "" }

// RemoteWriteArgs returns the arguments that make k6 send metrics to Prometheus. Dashboards select the run by the tag
// testid. Each runner needs a further tag of its own, or it would overwrite the counters of the others.
func RemoteWriteArgs(testID string) []string {
	return []string{"--out", RemoteWrite, "--tag", "testid=" + testID}
}

// RemoteWriteSettings returns k6's variables for Prometheus, for runners on other machines; nil if HasRemoteWrite
// returns false. Any of their values may be a credential, so they belong in a secret.
func RemoteWriteSettings() (map[string]string, error) {
	if !HasRemoteWrite() {
		return nil, nil
	}
	settings := map[string]string{remoteWriteStats: trendStats}
	for _, variable := range os.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, RemoteWritePrefix) && value != "" {
			settings[name] = value
		}
	}
	for _, name := range remoteWriteFiles {
		if settings[name] != "" {
			return nil, fmt.Errorf("%s names a file on this machine, which runners elsewhere do not have; use a user name and password, or a token, instead", name)
		}
	}
	address, err := url.Parse(settings[remoteWriteURL])
	if err != nil || address.Scheme != "http" && address.Scheme != "https" || address.Host == "" {
		return nil, errors.New(remoteWriteURL + " must begin with http:// or https:// and name a host") // the value may contain a password
	}
	// k6 prints the URL, so it must not contain a password.
	if user := address.User; user != nil {
		if settings[remoteWriteUser] == "" {
			settings[remoteWriteUser] = user.Username()
			settings[remoteWriteSecret], _ = user.Password()
		}
		address.User = nil
		settings[remoteWriteURL] = address.String()
	}
	return settings, nil
}

// remoteWriteMark is in each line that the Prometheus output writes to k6's log.
const remoteWriteMark = `output="Prometheus remote write"`

// FailedWrites returns the number of failed writes to Prometheus in a k6 log, and the last error.
func FailedWrites(log io.Reader) (count int, last string) {
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if !strings.Contains(line, remoteWriteMark) || !strings.Contains(line, "level=error") {
			continue
		}
		count++
		if _, reason, found := strings.Cut(line, " error="); found {
			if quoted, err := strconv.QuotedPrefix(reason); err == nil {
				reason, _ = strconv.Unquote(quoted)
			} else {
				reason, _, _ = strings.Cut(reason, " ")
			}
			last = reason
		}
	}
	return count, last
}
