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
	// Service is the service of the streams; zero for a run without streams.
	Service shard.Service `json:"service,omitzero"`

	// Codings lists the content codings of compressed streams.
	Codings []shard.Coding `json:"codings,omitempty"`
	// Redirects lists the origins to which the target redirected streams.
	Redirects []shard.Redirect `json:"redirects,omitempty"`
	// HTTP2 counts the streams over HTTP/2, and their connections; nil without such streams.
	HTTP2 *shard.HTTP2 `json:"http2,omitempty"`

	Interval   Interval    `json:"interval_s,omitzero"` // zero if messages have no interval
	LatenessMS Quantiles   `json:"lateness_ms"`
	ConnectMS  Quantiles   `json:"connect_ms"`
	LatencyMS  *Latency    `json:"latency_ms,omitempty"`
	Reconnect  *Reconnects `json:"reconnect_ms,omitempty"`
	Server     Server      `json:"server"`
	Control    *Control    `json:"control,omitempty"`
	// ArrivedTogether is the share of the messages that arrived within a millisecond of the previous one. It omits the
	// first burst of each stream, and the streams on which the script acts.
	ArrivedTogether float64 `json:"arrived_together,omitempty"`
	// EndRequests counts the requests that ended the streams; nil without such requests.
	EndRequests *EndRequests `json:"end_requests,omitempty"`
	// Cuts counts the disconnects that the run made on purpose, by kind.
	Cuts []Cuts `json:"cuts,omitempty"`
}

// CompressionText describes the compressed streams; "" without such streams.
func (c *Counts) CompressionText() string {
	var out []string
	for _, coding := range c.Codings {
		out = append(out, fmt.Sprintf("%s on %s", coding.Name, format.Count(coding.Streams, "stream")))
	}
	return strings.Join(out, ", ")
}

// RedirectText names the origins that served streams in place of the target; "" if only the target served streams. The
// text is a clause that follows the name of the target.
func (c *Counts) RedirectText() string {
	const maxOrigins = 3
	var origins []string
	unnamedStreams := 0 // streams to origins that the text does not name
	for _, r := range c.Redirects {
		if r.Origin == "" || len(origins) == maxOrigins {
			unnamedStreams += r.Streams
			continue
		}
		origins = append(origins, fmt.Sprintf("%s to %s", format.Count(r.Streams, "stream"), r.Origin))
	}
	if unnamedStreams > 0 {
		origins = append(origins, format.Count(unnamedStreams, "stream")+" to other origins")
	}
	if len(origins) == 0 {
		return ""
	}
	return ", which redirected " + strings.Join(origins, ", ")
}

// HTTP2Text describes the streams over HTTP/2 and their connections; "" without such streams.
func (c *Counts) HTTP2Text() string {
	if c.HTTP2 == nil {
		return ""
	}
	text := fmt.Sprintf("%s over %s", format.Count(c.HTTP2.Streams, "stream"), format.Count(c.HTTP2.Connections, "connection"))
	if c.HTTP2.MaxPerRunner < c.HTTP2.Connections {
		text += fmt.Sprintf(", at most %s of one runner", format.Thousands(c.HTTP2.MaxPerRunner))
	}
	return text
}
