package target

import "strings"

// lastWord of "nginx version: nginx/1.22.1" is what people call it.
func lastWord(s string) string {
	fields := strings.Fields(s)
	for _, f := range fields {
		if strings.HasPrefix(f, "nginx/") {
			return f
		}
	}
	return ""
}
