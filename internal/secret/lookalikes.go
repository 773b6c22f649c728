package secret

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// A lookalike is a pattern for secrets whose value is unknown. The group "secret" matches the text to replace. If there
// is a group "name", IsSecretName must accept its text. The pattern is applied only near one of the hints. It would
// need seconds for a whole line of several MB, such as a shard. The hints are in lower case.
type lookalike struct {
	hints   []string
	pattern *regexp.Regexp
}

var lookalikes = []lookalike{
	{[]string{"authorization", "cookie"}, regexp.MustCompile(`(?i)\b(?:authorization|cookie)\s*:\s*\[?(?:\\*["'])?(?P<secret>[^\s"'\\<>][^"'\\\r\n<>]*)`)},
	{[]string{"bearer", "basic"}, regexp.MustCompile(`(?i)\b(?:bearer|basic)\s+(?P<secret>[a-z0-9._~+/=-]{8,})`)},
	{[]string{"eyj"}, regexp.MustCompile(`\b(?P<secret>eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)`)}, // a JSON Web Token: {" in base64
	{[]string{"://"}, regexp.MustCompile(`://[^\s/@"':]*:(?P<secret>[^\s/@"']+)@`)},
	{[]string{"akia", "asia"}, regexp.MustCompile(`\b(?P<secret>(?:AKIA|ASIA)[0-9A-Z]{16})\b`)},

	{words, regexp.MustCompile(`"(?P<name>[^"\\]+)"\s*:\s*\[?\s*"(?P<secret>(?:[^"\\]|\\.)+)`)},                       // JSON
	{words, regexp.MustCompile(`["'](?P<name>[^"'\\]+)\\*["']\s*:\s*\[?\s*\\*["'](?P<secret>[^"'\\]+)`)},              // JSON in a JSON string
	{words, regexp.MustCompile(`(?i)(?P<name>[\w-]+)(?:=|%3D)(?:\\*["'])?(?P<secret>` + scheme + `[^\s"'&\\<>;,]+)`)}, // a parameter, a variable
	// A line of YAML, and a header in the middle of a line. There, only a name with a hyphen counts as a header,
	// because most other words before a colon are not headers.
	{words, regexp.MustCompile(`(?i)^\s*(?P<name>[\w-]+)` + headerValue)},
	{words, regexp.MustCompile(`(?i)\b(?P<name>\w+-[\w-]+)` + headerValue)},
}

// scheme matches the scheme that may precede a token in an Authorization header.
const scheme = `(?:(?:bearer|basic|digest|token|apikey|key) +)?`

// headerValue matches the text after the name of a header.
const headerValue = `\s*:\s*\[?(?:\\*["'])?(?P<secret>` + scheme + `[^\s"'\\<>\],;{([][^\s"'\\<>\],;]*)`

// Redacted replaces a secret.
const Redacted = "[redacted]"

// replacements lists the texts that replace secrets: Redacted without brackets, and the text of url.URL.Redacted.
var replacements = []string{strings.Trim(Redacted, "[]"), "xxxxx"}

// harmless matches values that are secrets only if isSecretVariable accepts their name. The value of token_ttl_s is not
// a secret.
var harmless = regexp.MustCompile(`^(?:-?[0-9.]+|true|false|null)$`)

// placeholder matches a value that stands for a secret, as in --header 'Authorization: Bearer {token}'.
var placeholder = regexp.MustCompile(`(?i)^` + scheme + `(?:\{token\}|…)$`)

// The maximum numbers of bytes of a match before and after a hint. Servers do not accept longer headers.
const (
	bytesBeforeHint = 256
	bytesAfterHint  = 8 << 10
)

// Redact returns the line, with Redacted in place of text that looks like a secret.
func Redact(line []byte) []byte {
	for _, l := range lookalikes {
		line = l.redact(line)
	}
	return line
}

func (l *lookalike) redact(line []byte) []byte {
	var out []byte
	done := 0
	value := 2 * l.pattern.SubexpIndex("secret")
	for _, part := range l.parts(line) {
		from, text := part[0], line[part[0]:part[1]]
		for _, match := range l.pattern.FindAllSubmatchIndex(text, -1) {
			isPartial := match[0] == 0 && from > 0 // the match may start in the middle of a name
			if isPartial || !l.isSecret(text, match) {
				continue
			}
			out = append(append(out, line[done:from+match[value]]...), Redacted...)
			done = from + match[value+1]
		}
	}
	if done == 0 {
		return line
	}
	return append(out, line[done:]...)
}

// isSecret reports whether a match is a secret by its name and value. match has the offsets of the groups.
func (l *lookalike) isSecret(text []byte, match []int) bool {
	group := func(name string) string {
		i := 2 * l.pattern.SubexpIndex(name)
		return string(text[match[i]:match[i+1]])
	}
	value := group("secret")
	if slices.Contains(replacements, strings.Trim(value, "[]")) || placeholder.MatchString(value) {
		return false
	}
	if l.pattern.SubexpIndex("name") < 0 {
		return true
	}
	name := group("name")
	return IsSecretName(name) && (isSecretVariable(name) || !harmless.MatchString(value))
}

// parts returns the parts of a line around hints as [from, to), sorted and not overlapping.
func (l *lookalike) parts(line []byte) (parts [][2]int) {
	lower := toLower(line)
	var hits []int
	for _, hint := range l.hints {
		for at := 0; ; at++ {
			i := bytes.Index(lower[at:], []byte(hint))
			if i < 0 {
				break
			}
			at += i
			hits = append(hits, at)
		}
	}
	slices.Sort(hits)
	for _, hit := range hits {
		from, to := max(0, hit-bytesBeforeHint), min(len(line), hit+bytesAfterHint)
		if last := len(parts) - 1; last >= 0 && from <= parts[last][1] {
			parts[last][1] = to
			continue
		}
		parts = append(parts, [2]int{from, to})
	}
	return parts
}

// toLower returns text in lower case. Unlike bytes.ToLower, it keeps the offset of every byte.
func toLower(text []byte) []byte {
	lower := slices.Clone(text)
	for i, c := range lower {
		if 'A' <= c && c <= 'Z' {
			lower[i] = c + 'a' - 'A'
		}
	}
	return lower
}
