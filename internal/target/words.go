package target

import "strings"

// versionOf makes "nginx version: nginx/1.22.1" what people call it.
func versionOf(s string) string {
	for _, f := range strings.Fields(s) {
		if strings.HasPrefix(f, "nginx/") {
			return f
		}
	}
	return "nginx"
}
