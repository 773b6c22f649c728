package report

import (
	"regexp"
	"strings"
)

var needsNoQuotes = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// Shell is a command line that can be pasted into a shell: what is empty, or has characters that the
// shell would read as its own, is in quotes.
func Shell(args ...string) string {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = arg
		if !needsNoQuotes.MatchString(arg) {
			words[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}
