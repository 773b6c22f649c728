package html

import (
	"github.com/sse-soak/sse-soak/internal/clamp"
	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

func tone(v *verdict.Verdict) Tone {
	switch v.Verdict {
	case verdict.Pass:
		if v.ConnectionsOnly() {
			return Doubt
		}
		return Good
	case verdict.Fail:
		return Bad
	case verdict.Invalid:
	}
	return Doubt
}

// ofAll sets the tone of a tile to good or bad. If all, the number of expected items, is 0, a good count is not judged.
func ofAll(t Tile, all uint64, good bool) Tile {
	switch {
	case all == 0 && good:
		t.Note = "not judged: none was expected"
	case good:
		t.Tone = Good
	default:
		t.Tone = Bad
	}
	return t
}

// zero is the tone of a count that should be 0.
func zero(n uint64) Tone {
	if n == 0 {
		return ""
	}
	return Bad
}

func (s *subject) banner() Banner {
	b := Banner{Word: s.v.Heading(), Tone: tone(s.v), Name: s.v.TestID, Reasons: s.v.Headline()}
	if s.v.Layout.Declared {
		b.Name, b.Tiles = s.v.Suite.Name+" "+s.v.TestID, s.metricTiles()
		return b
	}
	b.Tiles = s.countTiles()
	return b
}

// countTiles are what became of connections and messages.
func (s *subject) countTiles() []Tile {
	v, c := s.v, s.v.Connections
	open := ""
	if v.Held != nil {
		open = ", open for " + v.Held.Percent() + " of the time"
	}
	held := ofAll(Tile{Name: "connections held", Value: format.Thousands(c.Completed), Note: "of " + format.Thousands(c.Planned) + " planned" + open},
		clamp.Uint64(c.Planned), c.Completed == c.Planned)
	tiles := append([]Tile{held}, s.messageTiles()...)
	if v.Server.Known {
		tiles = append(tiles, s.serverTile())
	}
	return tiles
}

// serverTile compares the server's own count with what arrived.
func (s *subject) serverTile() Tile {
	server := s.v.Server
	t := Tile{Name: "the server's count", Value: "agrees", Note: "it sent " + format.Thousands(server.Sent), Tone: Good}
	if server.Partial(s.v.Messages.Received) {
		t.Note = "its ledger has " + format.Thousands(server.Sent) + " of them"
	}
	switch {
	case server.Confirms:
		t.Value, t.Tone = "confirms the faults", ""
	case !server.Agrees:
		t.Value, t.Tone = "differs", Bad
	}
	return t
}

// received returns the tile of received messages. It is good only if all planned messages were expected: streams that did not
// stay open to the end expected fewer.
func (s *subject) received(t ledger.Totals) Tile {
	out := Tile{Name: s.nouns(false) + " received", Value: format.Thousands(t.Received), Note: "of " + format.Thousands(t.Expected) + " expected", Tone: Good}
	planned := report.Planned(s.v)
	switch {
	case t.Expected == 0:
		out.Tone, out.Note = "", "not judged: none was expected"
	case t.Received != t.Expected:
		out.Tone = Bad
	case s.v.Verdict != verdict.Pass && (planned > 0 || s.v.Connections.Completed < s.v.Connections.Planned):
		out.Tone = ""
	}
	if planned > 0 {
		out.Note += " of the open streams, " + format.Thousands(planned) + " planned"
	}
	return out
}
