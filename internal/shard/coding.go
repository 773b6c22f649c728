package shard

import (
	"cmp"
	"errors"
	"slices"
)

// A Coding counts the streams with one content coding, of one runner or of all.
type Coding struct {
	Name          string `json:"coding"`                   // gzip, deflate, br or zstd
	Streams       int    `json:"streams"`                  // streams with this coding
	Messages      uint64 `json:"messages"`                 // messages on these streams, except disturbed ones
	Bursts        uint64 `json:"bursts,omitempty"`         // bursts of messages that were due at different times
	BurstMessages uint64 `json:"burst_messages,omitempty"` // messages in the bursts
}

const (
	maxCodings    = 10  // exceeds the number of known codings
	maxCodingName = 100 // bytes
)

func (m *Merged) addCodings(s *Shard) {
	for _, c := range s.Codings {
		i := slices.IndexFunc(m.Codings, func(have Coding) bool { return have.Name == c.Name })
		if i < 0 {
			m.Codings = append(m.Codings, c)
			continue
		}
		sum := &m.Codings[i]
		sum.Streams, sum.Messages = sum.Streams+c.Streams, sum.Messages+c.Messages
		sum.Bursts, sum.BurstMessages = sum.Bursts+c.Bursts, sum.BurstMessages+c.BurstMessages
	}
	slices.SortFunc(m.Codings, func(a, b Coding) int { return cmp.Compare(a.Name, b.Name) })
}

func (s *Shard) checkCodings() error {
	isInvalid := func(c Coding) bool {
		return len(c.Name) > maxCodingName || !areCounts(c.Streams) || !areCounts(c.Messages, c.Bursts, c.BurstMessages)
	}
	if len(s.Codings) > maxCodings || slices.ContainsFunc(s.Codings, isInvalid) {
		return errors.New("impossible content codings")
	}
	return nil
}
