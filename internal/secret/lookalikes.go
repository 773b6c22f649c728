package secret

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// A lookalike is a pattern of secrets that this program does not know. The group "secret" is replaced. If there is a group
// "name", IsSecretName must accept it. Only text near one of the hints (in lower case) is searched, because such expressions need
// seconds for a line of some MB, such as a shard.
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

	{Words, regexp.MustCompile(`"(?P<name>[^"\\]+)"\s*:\s*\[?\s*"(?P<secret>(?:[^"\\]|\\.)+)`)},                       // JSON
	{Words, regexp.MustCompile(`["'](?P<name>[^"'\\]+)\\*["']\s*:\s*\[?\s*\\*["'](?P<secret>[^"'\\]+)`)},              // JSON in a JSON string
	{Words, regexp.MustCompile(`(?i)(?P<name>[\w-]+)(?:=|%3D)(?:\\*["'])?(?P<secret>` + scheme + `[^\s"'&\\<>;,]+)`)}, // a parameter, a variable
	// A line of YAML, or a header, also in the middle of a line. A word before a colon there is part of a sentence.
	{Words, regexp.MustCompile(`(?i)^\s*(?P<name>[\w-]+)` + headerValue)},
	{Words, regexp.MustCompile(`(?i)\b(?P<name>\w+-[\w-]+)` + headerValue)},
}

// scheme matches a scheme that may precede a token.
const scheme = `(?:(?:bearer|basic|digest|token|apikey|key) +)?`

// headerValue matches the text after the name of a header.
const headerValue = `\s*:\s*\[?(?:\\*["'])?(?P<secret>` + scheme + `[^\s"'\\<>\],;{([][^\s"'\\<>\],;]*)`

// Redacted replaces a secret.
const Redacted = "[redacted]"

// replaced lists texts that already replace a secret: Redacted, and the one of Go in a URL.
var replaced = []string{strings.Trim(Redacted, "[]"), "xxxxx"}

// harmless matches values that are secrets only if Variable accepts their name. The value of token_ttl_s is not a secret.
var harmless = regexp.MustCompile(`^(?:-?[0-9.]+|true|false|null)$`)

// A secret with its name is at most this far before and behind a hint, in bytes. Servers accept no longer header.
const (
	before          = 256
	lookBehindBytes = 8 << 10
)

// Redact replaces all text in a line that looks like a secret.
func Redact(line []byte) []byte {
	for _, l := range lookalikes {
		line = l.redact(line)
	}
	return line
}

func (l *lookalike) redact(line []byte) []byte {
	var out []byte
	done := 0
	for _, m := range l.matches(line) {
		for _, at := range l.pattern.FindAllSubmatchIndex(line[m[0]:m[1]], -1) {
			if at[0] == 0 && m[0] > 0 || !l.isSecret(line[m[0]:m[1]], at) { // a match at the start of a part may begin in the middle of a name
				continue
			}
			value := 2 * l.pattern.SubexpIndex("secret")
			out = append(append(out, line[done:m[0]+at[value]]...), Redacted...)
			done = m[0] + at[value+1]
		}
	}
	if done == 0 {
		return line
	}
	return append(out, line[done:]...)
}

// isSecret checks the name and the value of one match.
func (l *lookalike) isSecret(text []byte, at []int) bool {
	group := func(name string) string {
		i := 2 * l.pattern.SubexpIndex(name)
		return string(text[at[i]:at[i+1]])
	}
	value := group("secret")
	if slices.Contains(replaced, strings.Trim(value, "[]")) {
		return false
	}
	if l.pattern.SubexpIndex("name") < 0 {
		return true
	}
	name := group("name")
	return IsSecretName(name) && (Variable(name) || !harmless.MatchString(value))
}

// matches returns the parts of a line around hints as [from, to), sorted and not overlapping.
func (l *lookalike) matches(line []byte) (parts [][2]int) {
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
		from, to := max(0, hit-before), min(len(line), hit+lookBehindBytes)
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
