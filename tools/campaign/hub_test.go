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

// The description of a hub recognizes the blocks of the hub.
func TestHubMatchesItsDescription(t *testing.T) {
	for seed := range uint64(1800) {
		family := families[max(0, int(seed)-1200)%len(families)] // two thirds of the seeds draw from the first family
		sc := draw(seed, family.faulty[0].group)
		h := sc.Hub
		if h.Message != nil { // the run does not publish
			continue
		}
		s := compile(t, h)
		const run = "t-a0b1c2.0"
		reader := s.Reader(run).WithFamily("t-a0b1c2.")
		m := &message{run: run, number: 17, index: 3, t: "1763000000123456"}
		if h.HasMarker {
			m.sum = sumOf(m.run, m.number, m.t)
		} else {
			m.run = ""
		}
		corruptions := []string{""}
		if sc.HubFault.Action != "" {
			corruptions = append(corruptions, sc.HubFault.Action)
		}
		for _, corruption := range corruptions {
			text, seq, belongs := h.block(m, corruption, 1000)
			b := parseBlock(text)
			if h.Order == "" {
				require.LessOrEqual(t, len(b.Data), 66_000)
			}
			got := reader.Read(&b)
			scenario := fmt.Sprintf("seed %d, %s: %.300s", seed, corruption, text)
			require.Equal(t, belongs, got.Kind == compiler.Delivery, scenario)
			switch {
			case !belongs:
			case seq == 0:
				require.Error(t, got.Err, scenario)
			default:
				require.NoError(t, got.Err, scenario)
				require.EqualValues(t, seq, got.Seq, scenario)
				require.Equal(t, h.HasTime, got.HasSentAt, scenario)
				if h.HasTime && h.Time != "millis" {
					require.Equal(t, strconv.FormatInt(got.SentAt-h.Skew.Microseconds(), 10), m.t, scenario)
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
			want := map[string]compiler.Kind{frameForeign: compiler.Foreign, frameOther: compiler.Other, frameHeartbeat: compiler.Heartbeat}[kind]
			if slices.Contains(h.Events, b.EventName()) && want == compiler.Other && b.HasData {
				want = compiler.Unmarked
			}
			require.Equal(t, want, reader.Read(&b).Kind, "seed %d, %s: %.300s", seed, name, text)
		}
	}
}
