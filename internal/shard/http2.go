package shard

import "errors"

// HTTP2 counts streams over HTTP/2 and the connections that they share, of one runner or of all.
type HTTP2 struct {
	Streams     int `json:"streams"`     // streams that opened over HTTP/2
	Connections int `json:"connections"` // connections of these streams
	// MaxPerRunner is the maximum number of connections of a runner. Only a merge sets it.
	MaxPerRunner int `json:"max_per_runner,omitempty"`
}

// Merge adds the counts of another runner.
func (h *HTTP2) Merge(other *HTTP2) {
	h.Streams += other.Streams
	h.Connections += other.Connections
	h.MaxPerRunner = max(h.MaxPerRunner, other.Connections)
}

func (s *Shard) checkHTTP2() error {
	if h := s.HTTP2; h != nil && (!areCounts(h.Streams, h.Connections) || h.Connections > h.Streams || h.MaxPerRunner != 0) {
		return errors.New("impossible counts of HTTP/2 streams")
	}
	return nil
}
