package shard

import "errors"

// Shared counts the streams of a runner over HTTP/2, which share connections.
type Shared struct {
	Streams     int `json:"streams"`     // opened streams
	Connections int `json:"connections"` // connections of these
	// MaxPerRunner is the largest number of connections of one runner. Only a merge sets it.
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
		return errors.New("it holds streams over HTTP/2 that cannot be")
	}
	return nil
}
