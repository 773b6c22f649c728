// Package secret knows secrets by the names under which they go.
package secret

import "regexp"

// Words are those of which one is in each name that Named knows, in lower case: a text without any of them has no such name.
var Words = []string{"auth", "token", "secret", "cookie", "session", "passw", "key", "jwt", "credential", "signature", "ticket", "sig", "pwd"}

var named = regexp.MustCompile(`(?i)auth|token|secret|cookie|session|passw|api-?_?key|(?:^|[-_]|access|subscription)key$|jwt|credential|signature|ticket|^(?:sig|pwd)$`)

// Named says that the value of a header, a parameter or a key of this name may be a secret. It rather says it too often.
func Named(name string) bool { return named.MatchString(name) }

var variable = regexp.MustCompile(`(?i)(TOKEN|PASSWORD|PASSWD|_PASS|SECRET|API_?KEY|(ACCESS|SECRET|PRIVATE)_KEY)$`)

// Variable says that a variable of this name holds a secret. Of those with other names that Named knows many hold none, such
// as SSH_AUTH_SOCK and XDG_SESSION_TYPE.
func Variable(name string) bool { return variable.MatchString(name) }
