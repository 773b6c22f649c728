package service

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// leastSecret is how long a secret is at least: a shorter one would be found where it is none.
const leastSecret = 4

var percent = regexp.MustCompile(`%[0-9A-F]{2}`)

// asCode has some letters of a text as JSON may have them: which, each writer chooses for itself.
func asCode(text, letters, format string) string {
	for _, c := range letters {
		text = strings.ReplaceAll(text, string(c), fmt.Sprintf(format, c))
	}
	return text
}

// Hide writes {token} where a secret stands in a text, such as a request that a service says back: as it is, and
// as JSON or a URL has it.
func Hide(text string, secrets ...string) string {
	for _, secret := range secrets {
		if len(secret) < leastSecret {
			continue
		}
		inJSON := string(escape{json: true}.append(nil, secret))
		ways := []string{secret, inJSON, string(escape{url: true}.append(nil, secret)), string(escape{json: true, url: true}.append(nil, secret)), url.QueryEscape(secret), url.PathEscape(secret)}
		for _, way := range ways {
			ways = append(ways, percent.ReplaceAllStringFunc(way, strings.ToLower))
		}
		ways = append(ways, strings.ReplaceAll(inJSON, "/", `\/`), asCode(inJSON, "<>&", `\u%04x`), asCode(secret, "\"<>&'+`", `\u%04X`)) // PHP, Go, .NET
		slices.SortFunc(ways, func(a, b string) int { return len(b) - len(a) })
		for _, way := range ways {
			text = strings.ReplaceAll(text, way, "{token}")
		}
	}
	return text
}
