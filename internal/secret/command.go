package secret

import (
	"slices"
	"strings"
)

// Command is a command line as it may be published: what looks like a secret in it is replaced, and so is what stands
// behind a flag whose name is that of one.
func Command(args []string) []string {
	out := slices.Clone(args)
	for i, arg := range args {
		out[i] = string(Redact([]byte(arg)))
		if i == 0 || strings.HasPrefix(arg, "-") {
			continue
		}
		if flag, isFlag := strings.CutPrefix(args[i-1], "-"); isFlag && !strings.Contains(flag, "=") && Named(strings.TrimPrefix(flag, "-")) {
			out[i] = Redacted
		}
	}
	return out
}
