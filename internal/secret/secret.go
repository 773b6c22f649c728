// Package secret finds secrets in text, by their names or their values, and replaces them.
package secret

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// words lists words in lower case. Every name that IsSecretName accepts contains one of them.
var words = []string{"auth", "token", "secret", "cookie", "session", "passw", "key", "jwt", "credential", "signature", "ticket", "sig", "pwd"}

// secretName matches the names that IsSecretName accepts. Its first part matches auth, authorization and authorisation,
// but not author, authors or authority.
var secretName = regexp.MustCompile(`(?i)auth(?:$|[^o]|o$|o[^r]|ori[sz])|token|secret|cookie|session|passw|api-?_?key|(?:^|[-_]|access|subscription)key$|jwt|credential|signature|ticket|^(?:sig|pwd)$`)

// IsSecretName reports whether the value of a header, a parameter or a key of this name may be a secret. It prefers
// false positives to false negatives.
func IsSecretName(name string) bool { return secretName.MatchString(name) }

var secretVariable = regexp.MustCompile(`(?i)(TOKEN|PASSWORD|PASSWD|_PASS|SECRET|API_?KEY|(ACCESS|SECRET|PRIVATE)_KEY)$`)

// isSecretVariable reports whether an environment variable of this name contains a secret. Unlike IsSecretName, it does
// not accept SSH_AUTH_SOCK or XDG_SESSION_TYPE.
func isSecretVariable(name string) bool { return secretVariable.MatchString(name) }

// Address returns a URL without its secrets. It removes the query and the fragment, and replaces the password. A user
// name without a password may be a token, so Address replaces it, too.
func Address(u *url.URL) string {
	display := *u
	display.RawQuery, display.Fragment = "", ""
	if user := display.User; user != nil {
		if _, hasPassword := user.Password(); !hasPassword {
			display.User = url.User("xxxxx")
		}
	}
	return display.Redacted()
}

// Command returns a command line without its secrets. It replaces the values of secret flags, and text that looks like
// a secret.
func Command(args []string) []string {
	out := slices.Clone(args)
	for i, arg := range args {
		out[i] = string(Redact([]byte(arg)))
		if i == 0 || strings.HasPrefix(arg, "-") {
			continue
		}
		flag := strings.TrimLeft(args[i-1], "-")
		if flag != args[i-1] && !strings.Contains(flag, "=") && IsSecretName(flag) {
			out[i] = Redacted
		}
	}
	return out
}
