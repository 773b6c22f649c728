// Package secret finds secrets in text, by their names or their values, and replaces them.
package secret

import "regexp"

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
