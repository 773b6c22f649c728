package verdict

import (
	"fmt"
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
)

// Redirected names the origins that served streams in place of the target, "" if none did. It continues the text that
// names the target.
func (c *Counts) Redirected() string {
	const listed = 3
	var origins []string
	others := 0
	for _, r := range c.Redirects {
		if r.Origin == "" || len(origins) == listed {
			others += r.Streams
			continue
		}
		origins = append(origins, fmt.Sprintf("%s to %s", format.Count(r.Streams, "stream"), r.Origin))
	}
	if others > 0 {
		origins = append(origins, format.Count(others, "stream")+" to other origins")
	}
	if len(origins) == 0 {
		return ""
	}
	return ", which redirected " + strings.Join(origins, ", ")
}
