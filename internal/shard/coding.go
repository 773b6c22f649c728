package shard

import (
	"cmp"
	"errors"
	"slices"
)

// A Coding is what a runner saw of streams that came compressed in one way.
type Coding struct {
	Name     string `json:"coding"`             // gzip, deflate, br or zstd
	Streams  int    `json:"streams"`            // that were opened
	Messages uint64 `json:"messages"`           // that came on them
	Bursts   uint64 `json:"bursts,omitempty"`   // of messages that were due one by one, and came together
	Together uint64 `json:"together,omitempty"` // messages in these
}

// mostCodings is more than there are.
const mostCodings = 10

// addCodings adds those of another runner.
func (m *Merged) addCodings(s *Shard) {
	for _, c := range s.Codings {
		i := slices.IndexFunc(m.Codings, func(have Coding) bool { return have.Name == c.Name })
		if i < 0 {
			m.Codings = append(m.Codings, c)
			continue
		}
		sum := &m.Codings[i]
		sum.Streams, sum.Messages = sum.Streams+c.Streams, sum.Messages+c.Messages
		sum.Bursts, sum.Together = sum.Bursts+c.Bursts, sum.Together+c.Together
	}
	slices.SortFunc(m.Codings, func(a, b Coding) int { return cmp.Compare(a.Name, b.Name) })
}

func (s *Shard) checkCodings() error {
	for _, c := range s.Codings {
		if len(s.Codings) > mostCodings || len(c.Name) > 100 || c.Streams < 0 || c.Streams > mostCount || max(c.Messages, c.Bursts, c.Together) > mostCount {
			return errors.New("it holds compressed streams that cannot be")
		}
	}
	return nil
}
