package verdict

import (
	"fmt"

	"github.com/sse-soak/sse-soak/internal/format"
)

// HTTP2 describes the streams over HTTP/2 and their number of connections; "" without any.
func (c *Counts) HTTP2() string {
	if c.Shared == nil {
		return ""
	}
	said := fmt.Sprintf("%s over %s", format.Count(c.Shared.Streams, "stream"), format.Count(c.Shared.Connections, "connection"))
	if c.Shared.Most < c.Shared.Connections {
		said += fmt.Sprintf(", at most %s of one runner", format.Thousands(c.Shared.Most))
	}
	return said
}
