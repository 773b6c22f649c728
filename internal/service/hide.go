package service

import (
	"net/url"
	"slices"
	"strings"
)

// leastSecret is how long a secret is at least: a shorter one would be found where it is none.
const leastSecret = 4

// Hide writes {token} where a secret stands in a text, such as a request that a service says back: as it is, and
// as JSON or a URL has it.
func Hide(text string, secrets ...string) string {
	for _, secret := range secrets {
		if len(secret) < leastSecret {
			continue
		}
		inJSON := string(escape{json: true}.append(nil, secret))
		ways := []string{secret, inJSON, string(escape{url: true}.append(nil, secret)), string(escape{json: true, url: true}.append(nil, secret)), url.QueryEscape(secret), url.PathEscape(secret)}
		slices.SortFunc(ways, func(a, b string) int { return len(b) - len(a) })
		for _, way := range ways {
			text = strings.ReplaceAll(text, way, "{token}")
		}
	}
	return text
}
