package capsule

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
)

// Secrets are values that never go into a capsule.
type Secrets struct{ known []secret }

// A secret is one form of a value that is known; is finds it as a word.
type secret struct {
	form []byte
	is   *regexp.Regexp
}

// redacted stands where a secret was.
const redacted = "[redacted]"

// A lookalike is what looks like a secret, whoever's it is. Its group stays. Only lines that have one of the hints, in lower
// case, are looked at: tables of a hundred thousand streams have none, and expressions like these take seconds for some MB.
type lookalike struct {
	hints []string
	is    *regexp.Regexp
}

var lookalikes = []lookalike{
	{[]string{"authorization"}, regexp.MustCompile(`(?i)(authorization["']?\s*[:=]\s*(?:\[?\\*["'])?\s*(?:bearer|basic|digest)?\s*)[^\s"'\\<>\]]+`)},
	{[]string{"bearer", "basic"}, regexp.MustCompile(`(?i)(\b(?:bearer|basic)\s+)[a-z0-9._~+/=-]{8,}`)},
	{[]string{"@"}, regexp.MustCompile(`(://[^\s/@"':]*:)[^\s/@"']+(?:@)`)},
	{names, regexp.MustCompile(`(?i)(\b[a-z0-9_]*(?:token|password|passwd|secret|api_?key|access_key)(?:=|%3D))[^\s"'&\\<>;,]+`)},
	{names, regexp.MustCompile(`(?i)("[a-z0-9_-]*(?:token|password|passwd|secret|api_?key)"\s*:\s*")(?:[^"\\]|\\.)+`)},
	{[]string{"akia", "asia"}, regexp.MustCompile(`()\b(?:AKIA|ASIA)[0-9A-Z]{16}\b`)},
}

var names = []string{"token", "passw", "secret", "api_key", "apikey", "access_key"}

// secretName is a variable that holds a secret.
var secretName = regexp.MustCompile(`(?i)(TOKEN|PASSWORD|PASSWD|_PASS|SECRET|API_?KEY|(ACCESS|SECRET|PRIVATE)_KEY)$`)

// ours are the project's own, which may be short.
var ours = []string{"BACKEND_TOKEN", "SUBSCRIBE_TOKEN", "PUBLISH_TOKEN", "GRAFANA_PASSWORD", "PROMETHEUS_PASSWORD", "K6_PROMETHEUS_RW_PASSWORD"}

const (
	shortest      = 8 // of a secret of others, so that a variable that says "yes" does not take every yes away
	shortestOfOur = 3
)

// NewSecrets are those of an environment, of a file like .env if it is there, and of addresses with a password.
func NewSecrets(environment []string, dotenv string, addresses ...string) Secrets {
	if text, err := os.ReadFile(dotenv); err == nil {
		for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
			environment = append(slices.Clip(environment), strings.TrimSpace(lines.Text()))
		}
	}
	var s Secrets
	for _, setting := range environment {
		name, value, _ := strings.Cut(setting, "=")
		value = strings.Trim(value, `"'`)
		own := slices.Contains(ours, name)
		if own && len(value) >= shortestOfOur || secretName.MatchString(name) && len(value) >= shortest {
			s.add(value)
		}
		if strings.Contains(value, "://") {
			addresses = append(addresses, value)
		}
	}
	for _, address := range addresses {
		if u, err := url.Parse(address); err == nil && u.User != nil {
			if password, ok := u.User.Password(); ok && password != "" {
				s.add(password)
			}
		}
	}
	return s
}

// add also takes the forms that a URL and JSON give a value.
func (s *Secrets) add(value string) {
	for _, form := range slices.Compact(slices.Sorted(slices.Values(append(inJSON(value), value, url.QueryEscape(value), url.PathEscape(value), url.UserPassword("", value).String()[1:])))) {
		if strings.Contains(redacted, form) { // it would be found again in what replaces it
			continue
		}
		s.known = append(s.known, secret{[]byte(form), regexp.MustCompile(`(^|[^A-Za-z0-9])` + regexp.QuoteMeta(form) + `($|[^A-Za-z0-9])`)})
	}
}

// inJSON is a value as a JSON text has it: as Go writes it for pages, and as everybody else does.
func inJSON(value string) (forms []string) {
	for _, forPages := range []bool{true, false} {
		var text bytes.Buffer
		out := json.NewEncoder(&text)
		out.SetEscapeHTML(forPages)
		_ = out.Encode(value) // a text can be encoded
		forms = append(forms, strings.TrimSuffix(text.String()[1:], "\"\n"))
	}
	return forms
}

// Clean replaces secrets in a text, and says whether there was one.
func (s Secrets) Clean(text []byte) (clean []byte, found bool) {
	var out bytes.Buffer
	for line := range bytes.Lines(text) {
		changed := s.line(line)
		found = found || !bytes.Equal(changed, line)
		out.Write(changed)
	}
	return out.Bytes(), found
}

func (s Secrets) line(line []byte) []byte {
	for _, one := range s.known {
		if !bytes.Contains(line, one.form) {
			continue
		}
		for one.is.Match(line) { // again: of two side by side the first takes the character between them
			line = one.is.ReplaceAll(line, []byte("${1}"+redacted+"${2}"))
		}
	}
	lower := bytes.ToLower(line)
	for _, like := range lookalikes {
		if !slices.ContainsFunc(like.hints, func(hint string) bool { return bytes.Contains(lower, []byte(hint)) }) {
			continue
		}
		line = like.is.ReplaceAllFunc(line, func(match []byte) []byte {
			if bytes.Contains(match, []byte(redacted)) {
				return match
			}
			out := append(slices.Clone(like.is.FindSubmatch(match)[1]), redacted...)
			if bytes.HasSuffix(match, []byte("@")) {
				out = append(out, '@')
			}
			return out
		})
	}
	return line
}

// String is Clean for one value.
func (s Secrets) String(value string) string {
	clean, _ := s.Clean([]byte(value))
	return string(clean)
}
