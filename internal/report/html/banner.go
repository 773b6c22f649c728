package html

import (
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

func tone(v verdict.Outcome) Tone {
	switch v {
	case verdict.Pass:
		return Good
	case verdict.Fail:
		return Bad
	case verdict.Invalid:
	}
	return Doubt
}

// zero is the tone of a count that should be 0.
func zero(n uint64) Tone {
	if n == 0 {
		return ""
	}
	return Bad
}

func (s *subject) banner() Banner {
	b := Banner{Word: strings.ToUpper(string(s.v.Verdict)), Tone: tone(s.v.Verdict), Name: s.v.TestID, Reasons: s.v.Reasons}
	if s.v.Layout.Declared {
		b.Name, b.Tiles = s.v.Suite.Name+" "+s.v.TestID, s.metricTiles()
		return b
	}
	b.Tiles = s.countTiles()
	return b
}

// countTiles are what became of connections and messages.
func (s *subject) countTiles() []Tile {
	v, c, n := s.v, s.v.Connections, s.v.Noops
	whole := func(part, all uint64) Tone {
		if part == all {
			return Good
		}
		return Bad
	}
	open := ""
	if v.Held != nil {
		open = ", open for " + v.Held.Percent() + " of the time"
	}
	held := Tile{Name: "connections held", Value: format.Thousands(c.Completed), Note: "of " + format.Thousands(c.Planned) + " planned" + open, Tone: whole(uint64(c.Completed), uint64(c.Planned))}
	if s.described() {
		return append([]Tile{held}, s.messageTiles()...)
	}
	tiles := []Tile{
		held,
		{Name: "noops received", Value: format.Thousands(n.Received), Note: "of " + format.Thousands(n.Expected) + " expected", Tone: whole(n.Received, n.Expected)},
		{Name: "noops missed", Value: format.Thousands(n.Missed), Note: share(float64(n.Missed), float64(n.Expected)) + " of the expected", Tone: whole(n.Missed, 0)},
		{Name: "lateness p99", Value: duration(v.LatenessMS.P99), Note: "at most " + duration(v.LatenessMS.Max)},
	}
	server := Tile{Name: "the server's count", Value: "unknown", Note: "it shows no ledger"}
	if v.Server.Known {
		server = Tile{Name: "the server's count", Value: "agrees", Note: "it sent " + format.Thousands(v.Server.Sent), Tone: Good}
		if !v.Server.Agrees {
			server.Value, server.Tone = "differs", Bad
		}
		if v.Server.Partial(n.Received) {
			server.Note = "its ledger has " + format.Thousands(v.Server.Sent) + " of them"
		}
		if v.Server.Confirms {
			server.Value, server.Tone = "confirms the faults", ""
		}
	}
	return append(tiles, server)
}
