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

	"github.com/sse-soak/sse-soak/internal/secret"
)

// Secrets are values that never go into a capsule.
type Secrets struct {
	known []form
	// Common are variables whose values are words or numbers that anything may hold. Those are replaced only where they are
	// named as secrets: everywhere, they would take names and numbers out of the evidence.
	Common []string
}

// A form is one in which a value that is known may be written; is finds it as a word.
type form struct {
	text []byte
	is   *regexp.Regexp
}

// ours are the project's own, which may be short.
var ours = []string{"BACKEND_TOKEN", "SUBSCRIBE_TOKEN", "PUBLISH_TOKEN", "GRAFANA_PASSWORD", "PROMETHEUS_PASSWORD", "K6_PROMETHEUS_RW_PASSWORD"}

// common is such a word or number. Tokens that somebody has drawn are longer, or mix both.
var common = regexp.MustCompile(`^(?:[A-Za-z]{1,11}|[0-9.]{1,9}|sse-soak)$`)

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
		switch told := own && len(value) >= shortestOfOur || secret.Variable(name) && len(value) >= shortest; {
		case told && common.MatchString(value):
			s.Common = append(s.Common, name)
		case told:
			s.add(value)
		}
		switch {
		case strings.Contains(value, "://"):
			addresses = append(addresses, value)
		case strings.HasSuffix(strings.ToUpper(name), "_PROXY"): // whose scheme may be left out
			addresses = append(addresses, "http://"+value)
		}
	}
	for _, address := range addresses {
		if u, err := url.Parse(address); err == nil && u.User != nil {
			if password, ok := u.User.Password(); ok && password != "" && !common.MatchString(password) {
				s.add(password)
			}
		}
	}
	return s
}

// add also takes the forms that a URL and JSON give a value.
func (s *Secrets) add(value string) {
	for _, text := range slices.Compact(slices.Sorted(slices.Values(append(inJSON(value), value, url.QueryEscape(value), url.PathEscape(value), url.UserPassword("", value).String()[1:])))) {
		if strings.Contains(secret.Redacted, text) { // it would be found again in what replaces it
			continue
		}
		s.known = append(s.known, form{[]byte(text), regexp.MustCompile(`(^|[^A-Za-z0-9])` + regexp.QuoteMeta(text) + `($|[^A-Za-z0-9])`)})
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

// code is that of report.html: ours, the same in each of a version, and the page's policy has its hash.
var code = regexp.MustCompile(`(?s)<style>.*?</style>|<script>.*?</script>`)

// Page is Clean for report.html.
func (s Secrets) Page(text []byte) (clean []byte, found bool) {
	done := 0
	for _, at := range append(code.FindAllIndex(text, -1), []int{len(text), len(text)}) {
		part, one := s.Clean(text[done:at[0]])
		clean, found, done = append(append(clean, part...), text[at[0]:at[1]]...), found || one, at[1]
	}
	return clean, found
}

func (s Secrets) line(line []byte) []byte {
	for _, one := range s.known {
		if !bytes.Contains(line, one.text) {
			continue
		}
		for one.is.Match(line) { // again: of two side by side the first takes the character between them
			line = one.is.ReplaceAll(line, []byte("${1}"+secret.Redacted+"${2}"))
		}
	}
	return secret.Redact(line)
}

// String is Clean for one value.
func (s Secrets) String(value string) string {
	clean, _ := s.Clean([]byte(value))
	return string(clean)
}
