package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	compiler "github.com/sse-soak/sse-soak/internal/service"
)

// parseBlock returns the fields of one block, as a client finds them.
func parseBlock(text string) (b compiler.Block) {
	var data []string
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n\n"), "\n") {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "":
			b.HasComment, b.Comment = true, []byte(value)
		case "event":
			b.Event = []byte(value)
		case "id":
			b.HasID, b.ID = true, []byte(value)
		case "data":
			b.HasData = true
			data = append(data, value)
		}
	}
	b.Data = []byte(strings.Join(data, "\n"))
	return b
}

func compile(t *testing.T, h *hubSpec) *compiler.Service {
	t.Helper()
	text, err := json.Marshal(h.description())
	require.NoError(t, err)
	s, err := compiler.Parse(text)
	require.NoError(t, err, string(text))
	return s
}

// The description of a hub recognizes its own blocks.
func TestHubMatchesItsDescription(t *testing.T) {
	for seed := range uint64(1800) {
		family := families[max(0, int(seed)-1200)%len(families)] // the first two thirds are of the first
		sc := draw(seed, family.faulty[0].group)
		h := sc.Hub
		if h.Message != nil { // it is not published to
			continue
		}
		s := compile(t, h)
		const run = "t-a0b1c2.0"
		reader := s.Reader(run).WithFamily("t-a0b1c2.")
		l := &message{run: run, number: 17, index: 3, t: "1763000000123456"}
		if h.Marked {
			l.sum = sumOf(l.run, l.number, l.t)
		} else {
			l.run = ""
		}
		harms := []string{""}
		if sc.HubFault.Action != "" {
			harms = append(harms, sc.HubFault.Action)
		}
		for _, fault := range harms {
			text, reads, belongs := h.block(l, fault, 1000)
			b := parseBlock(text)
			if h.Order == "" {
				require.LessOrEqual(t, len(b.Data), 66_000)
			}
			got := reader.Read(&b)
			about := fmt.Sprintf("seed %d, %s: %.300s", seed, fault, text)
			require.Equal(t, belongs, got.Kind == compiler.Delivery, about)
			switch {
			case !belongs:
			case reads == 0:
				require.Error(t, got.Err, about)
			default:
				require.NoError(t, got.Err, about)
				require.EqualValues(t, reads, got.Seq, about)
				require.Equal(t, h.Timed, got.HasSentAt, about)
				if h.Timed && h.Time != "millis" {
					require.Equal(t, strconv.FormatInt(got.SentAt-h.Skew.Microseconds(), 10), l.t, about)
				}
			}
		}
		if h.Heartbeat != "" {
			b := parseBlock(strings.TrimPrefix(heartbeats[h.Heartbeat].text, ":\nid\n"))
			require.Equal(t, compiler.Heartbeat, reader.Read(&b).Kind, "seed %d: %s", seed, h.Heartbeat)
		}
		hub := hub{hubSpec: *h, marker: run}
		for _, name := range h.Foreign {
			text, kind := hub.foreignBlock(name, 5)
			b := parseBlock(text)
			want := map[string]compiler.Kind{frameForeign: compiler.Foreign, frameOther: compiler.Other, frameHeartbeat: compiler.Heartbeat, frameUncounted: compiler.Other}[kind]
			if slices.Contains(h.Events, b.EventName()) && want == compiler.Other && b.HasData {
				want = compiler.Unmarked
			}
			require.Equal(t, want, reader.Read(&b).Kind, "seed %d, %s: %.300s", seed, name, text)
		}
	}
}
