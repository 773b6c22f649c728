package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	compiler "github.com/sse-soak/sse-soak/internal/service"
)

func encode(t *testing.T, sc *scenario) string {
	t.Helper()
	b, err := json.Marshal(sc)
	require.NoError(t, err)
	return string(b)
}

func TestSeedsAreReproducible(t *testing.T) {
	for seed := range uint64(500) {
		require.Equal(t, encode(t, draw(seed, "")), encode(t, draw(seed, "")))
	}
	require.NotEqual(t, encode(t, draw(1, "")), encode(t, draw(2, "")))
}

func TestKindsAndPlansAreValid(t *testing.T) {
	count := map[string]int{}
	for seed := range uint64(5000) {
		sc := draw(seed, "")
		count[sc.Group+"/"+sc.Kind]++
		p := sc.Plan
		require.GreaterOrEqual(t, float64(p.Seconds-lead), 2*p.Interval, encode(t, sc))
		require.True(t, p.Seconds >= 8 && p.Seconds <= 20, "a run must take 8 to 20 s: %s", encode(t, sc))
		require.True(t, p.Connections >= 5 && p.Connections <= 150, "a run must have 5 to 150 clients: %s", encode(t, sc))
		require.True(t, sc.Service != nil || sc.Proxy.Action == "", "a fault of the proxy needs a service in this process")
	}
	all := slices.Concat(soakKinds, suiteKinds)
	for _, f := range families {
		all = append(all, f.faulty...)
	}
	for _, k := range all {
		require.NotZero(t, count[k.group+"/"+k.name], "no seed draws %s/%s", k.group, k.name)
	}
	clean := count["clean/clean"]
	require.InDelta(t, 2500, clean, 200, "half of the scenarios must be clean")
}

// A fault in the middle of a stream affects a noop that is neither the first nor one of the last.
func TestMiddleFaultHasNoopsAroundIt(t *testing.T) {
	for seed := range uint64(2000) {
		sc := draw(seed, "lose")
		require.GreaterOrEqual(t, sc.Strike.From, 2, encode(t, sc))
		require.Less(t, sc.Strike.From, sc.Plan.noops(), encode(t, sc))
	}
}

// A clean run is valid only if most messages are published at least streamMargin after the start and before the end of
// a stream.
func TestMostMessagesOfACleanHubAreChecked(t *testing.T) {
	for seed := range uint64(5000) {
		sc := draw(seed, "")
		if !sc.isClean() || sc.Family != "published" || sc.Hub.End != "server" || sc.Hub.Resume != "none" {
			continue
		}
		for _, share := range []float64{1.03, 1.17} {
			lifetime := time.Duration(share * sc.Hub.Lifetime * float64(time.Second))
			outage := 2*time.Duration(sc.Hub.Retry)*time.Millisecond + hubSlack
			published, checked := 0, 0
			for at := 2 * time.Second; at < sc.Plan.hold()-2*time.Second; at += 10 * time.Millisecond {
				age := at % (lifetime + outage)
				published, checked = published+1, checked+btoi(age > streamMargin && age < lifetime-streamMargin)
			}
			require.GreaterOrEqual(t, 2*checked, published, encode(t, sc))
		}
	}
}

// A name that several families have selects one of them.
func TestKindsByName(t *testing.T) {
	for _, f := range families {
		for _, k := range f.faulty {
			for seed := range uint64(20) {
				sc := draw(seed, k.name)
				require.Equal(t, sc.Family, sc.Group, k.name)
			}
		}
	}
}

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

func TestUnknownTopicIsNotFound(t *testing.T) {
	f := &feedService{plan: new(plan), topics: []*priceTopic{{}}}
	for _, topic := range []string{"-1", "1", "x", ""} {
		w := httptest.NewRecorder()
		f.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/feed?topic="+topic, nil))
		require.Equal(t, http.StatusNotFound, w.Code, topic)
	}
}
