package secret

import (
	"slices"
	"strings"
)

// Command returns a command line for publication. It replaces text that looks like a secret, and the value of each flag whose
// name is that of a secret.
func Command(args []string) []string {
	out := slices.Clone(args)
	for i, arg := range args {
		out[i] = string(Redact([]byte(arg)))
		if i == 0 || strings.HasPrefix(arg, "-") {
			continue
		}
		if flag, isFlag := strings.CutPrefix(args[i-1], "-"); isFlag && !strings.Contains(flag, "=") && IsSecretName(strings.TrimPrefix(flag, "-")) {
			out[i] = Redacted
		}
	}
	return out
}
