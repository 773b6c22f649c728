package shard

import "errors"

// Shared counts the streams of a runner over HTTP/2, which share connections.
type Shared struct {
	Streams     int `json:"streams"`     // opened streams
	Connections int `json:"connections"` // connections of these streams
	// MaxPerRunner is the maximum number of connections of a runner. Only a merge sets it.
	MaxPerRunner int `json:"most,omitempty"`
}

// addShared adds the counts of another runner.
func (m *Merged) addShared(s *Shard) {
	if s.Shared == nil {
		return
	}
	if m.Shared == nil {
		m.Shared = new(Shared)
	}
	m.Shared.Streams += s.Shared.Streams
	m.Shared.Connections += s.Shared.Connections
	m.Shared.MaxPerRunner = max(m.Shared.MaxPerRunner, s.Shared.Connections)
}

func (s *Shard) checkShared() error {
	if h := s.Shared; h != nil && (h.Streams < 0 || h.Streams > maxNumber || h.Connections < 0 || h.Connections > h.Streams || h.MaxPerRunner != 0) {
		return errors.New("impossible counts of HTTP/2 streams")
	}
	return nil
}
