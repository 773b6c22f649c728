package verdict

import (
	"fmt"
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// Counts are the sums over all event streams of a run.
type Counts struct {
	Connections Connections `json:"connections"`
	Messages    Messages    `json:"messages"`
	Evidence    Basis       `json:"evidence"`
	// Service is the service of the streams; its zero value stands for a run without streams.
	Service shard.Service `json:"service,omitzero"`

	// Codings has the codings of compressed streams.
	Codings []shard.Coding `json:"codings,omitempty"`
	// Redirects are those of streams that other origins than the target served.
	Redirects []shard.Redirect `json:"redirects,omitempty"`
	// Shared counts the streams over HTTP/2, and their connections; nil without any.
	Shared *shard.Shared `json:"http2,omitempty"`

	Interval   Interval    `json:"interval_s,omitzero"` // zero if no message is expected by interval
	LatenessMS Quantiles   `json:"lateness_ms"`
	ConnectMS  Quantiles   `json:"connect_ms"`
	LatencyMS  *Latency    `json:"latency_ms,omitempty"`
	Reconnect  *Reconnects `json:"reconnect_ms,omitempty"`
	Server     Server      `json:"server"`
	Control    *Control    `json:"control,omitempty"`
	// ArrivedTogether is the share of the messages that arrived within a millisecond after the one before.
	ArrivedTogether float64 `json:"arrived_together,omitempty"`
	// Ends are the requests that ended the streams; nil without any.
	Ends *Ends `json:"end_requests,omitempty"`
	// Cuts counts the disconnects that the run made of its own streams, by kind.
	Cuts []Cuts `json:"cuts,omitempty"`
}

// Compressed describes the compressed streams, "" without any.
func (c *Counts) Compressed() string {
	var out []string
	for _, coding := range c.Codings {
		out = append(out, fmt.Sprintf("%s on %s", coding.Name, format.Count(coding.Streams, "stream")))
	}
	return strings.Join(out, ", ")
}

// Redirected names the origins that served streams in place of the target, "" if none did. It continues the text that
// names the target.
func (c *Counts) Redirected() string {
	const listed = 3
	var origins []string
	shared := 0
	for _, r := range c.Redirects {
		if r.Origin == "" || len(origins) == listed {
			shared += r.Streams
			continue
		}
		origins = append(origins, fmt.Sprintf("%s to %s", format.Count(r.Streams, "stream"), r.Origin))
	}
	if shared > 0 {
		origins = append(origins, format.Count(shared, "stream")+" to other origins")
	}
	if len(origins) == 0 {
		return ""
	}
	return ", which redirected " + strings.Join(origins, ", ")
}

// HTTP2 describes the streams over HTTP/2 and their number of connections; "" without any.
func (c *Counts) HTTP2() string {
	if c.Shared == nil {
		return ""
	}
	text := fmt.Sprintf("%s over %s", format.Count(c.Shared.Streams, "stream"), format.Count(c.Shared.Connections, "connection"))
	if c.Shared.Most < c.Shared.Connections {
		text += fmt.Sprintf(", at most %s of one runner", format.Thousands(c.Shared.Most))
	}
	return text
}
