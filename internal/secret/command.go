package secret

import (
	"slices"
	"strings"
)

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
