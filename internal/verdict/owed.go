package verdict

import (
	"fmt"
	"sort"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// joinWindow is for how long before and after a stream's beginning and end nothing is owed to it: what is published at
// that moment may or may not find it. Where the publisher was on another machine, whose clock may differ, the fastest message
// shows by how much, and the window is longer.
const joinWindow = time.Second

// leastOwed is the share of what was confirmed to its topic that a stream has to have got or to be owed.
const leastOwed = .5

// owed compares what came on the ith connection with what was published to its topic. What the service confirmed is owed
// to each stream that was open then, and to one that went on behind the last message of the stream before also what was
// confirmed in between; what it refused, or left without an answer, may come. So is one between two that came on one
// stream, in a service that promises the order. Numbers that did not come and were owed are lost.
func (s *Streams) owed(i int, r *shard.Connection) *shard.Connection {
	topic, messages, ok := s.m.Topic(r)
	if !ok {
		return r
	}
	a := s.accountOf(r, messages)
	sum := s.topics[topic]
	lost := s.atCuts(i, &a, a.lost())
	s.Messages.NotOwed += a.unowed
	if a.early {
		s.early = append(s.early, fmt.Sprintf("%s had message %d of topic %s before it was published: it is of another run with the same marker (%s)", r.ID, r.Last, topic, s.m.Plan.Marker))
	}
	if share := float64(a.unowed); share > (1-leastOwed)*float64(sum.confirmed) {
		s.unclaimed = append(s.unclaimed, fmt.Sprintf("%s did not get %d of the %d messages of topic %s, and was not owed them: %s", r.ID, a.unowed, sum.confirmed, topic, notOwed))
	}
	if a.unreplied && a.undecided > 0 {
		s.unreplied++
	}
	if len(lost) > 0 || a.unknown > 0 || a.undecided > 0 {
		r = s.concludeOwed(i, &a, lost)
	}
	sum.add(r)
	return r
}

// An account is what one connection was owed, and what came.
type account struct {
	r         *shard.Connection
	messages  []shard.Message
	ordered   bool          // a message that came on a stream proves that the stream was owed those behind it
	window    time.Duration // see joinWindow
	spans     []span        // in which messages were owed, microseconds since 1970
	unsure    bool          // clocks differ by so much that hardly anything is left of a span
	began     int64         // of the runner
	last      int64         // end of the last span that is known
	unreplied bool          // the last attempt to go on had no answer when the run ended
	undecided uint64        // did not come, and nobody knows whether a stream was open, or would have brought it
	early     bool          // the last message came before it was sent
	unowed    uint64        // were confirmed, did not come, and were not owed
	unknown   uint64        // came, and nobody published them
}

type span struct{ from, to int64 }

func (s *Streams) accountOf(r *shard.Connection, messages []shard.Message) account {
	runner := &s.m.Runners[r.Runner]
	window := joinWindow
	if fastest, ok := runner.Fastest(); ok && s.m.PublisherOf(r.Runner).Host != runner.Host {
		window += fastest.Abs()
	}
	a := account{r: r, messages: messages, began: runner.StartedUS, window: window}
	a.ordered = !s.m.Service.AnyOrder && r.Last <= uint64(len(messages)) // else the number of one was changed
	for i, open := range r.Spans {
		to := open.To
		if to == 0 { // a runner that was killed; the run is invalid
			to = r.LastAt
		}
		at := span{runner.At(open.From + window).UnixMicro(), runner.At(to - window).UnixMicro()}
		tooShort := i == len(r.Spans)-1 && to-open.From < window // the run was over before all could come that was missed
		if last := len(a.spans) - 1; !open.Resumed || last < 0 {
			a.spans = append(a.spans, at)
		} else if !tooShort {
			a.spans[last].to = at.to
		}
		a.last = at.to
		if widened := window - joinWindow; to-open.From > 2*joinWindow && 4*widened > to-open.From {
			a.unsure = true
		}
	}
	a.unreplied = r.Unanswered > window && s.resumes()
	if n := r.Last; n > 0 && n <= uint64(len(messages)) && r.Corrupted == 0 { // else it may be that of a corrupted one
		a.early = runner.At(r.LastAt+window).UnixMicro() < messages[n-1].SentUS
	}
	if known := max(uint64(len(messages)), max(r.First, 1)-1); r.Last > known && r.First > 0 {
		a.unknown = r.Last - known
		for _, hole := range r.Holes {
			if hole[1] > known {
				a.unknown -= min(hole[1]-max(hole[0], known+1)+1, a.unknown)
			}
		}
	}
	return a
}

// lost are the numbers that were owed and did not come, as ranges.
func (a *account) lost() (out []ledger.Range) {
	published := uint64(len(a.messages))
	missing := []ledger.Range{{1, published}} // of a stream on which nothing came
	if a.r.First > 0 || a.r.Last > 0 {
		missing = append([]ledger.Range{{1, a.r.First - 1}}, a.r.Holes...)
		missing = append(missing, ledger.Range{a.r.Last + 1, published})
	}
	sort.Slice(missing, func(i, j int) bool { return missing[i][0] < missing[j][0] })
	apart := map[ledger.Range]bool{}
	for _, hole := range a.r.Apart {
		apart[hole] = true
	}
	unplaced := a.r.Unplaced // each stands for one that seems to be missing
	for _, run := range missing {
		enclosed := a.ordered && a.r.First < run[0] && run[1] < a.r.Last && !apart[run]
		for n := run[0]; n >= 1 && n <= min(run[1], published); n++ {
			if !a.owes(n, enclosed) {
				continue
			}
			if unplaced > 0 {
				unplaced--
				continue
			}
			out = appendNumber(out, n)
		}
	}
	return out
}

// owes says whether a message that did not come was owed. It is enclosed if one before it and one behind it came on one
// stream.
func (a *account) owes(number uint64, enclosed bool) bool {
	m := &a.messages[number-1]
	if m.State != shard.Confirmed {
		return false
	}
	if enclosed {
		return true
	}
	for _, open := range a.spans {
		switch {
		case m.SentUS < open.from || m.SentUS > open.to:
		case m.AnsweredUS > open.to: // it was confirmed only when the stream had ended
			a.undecided++
			return false
		default:
			return true
		}
	}
	if (a.r.UnlistedSpans > 0 || a.unreplied) && m.SentUS > a.last || a.unsure {
		a.undecided++
	} else {
		a.unowed++
	}
	return false
}

// concludeOwed is the record of the ith connection with what the publisher's account shows.
func (s *Streams) concludeOwed(i int, a *account, lost []ledger.Range) *shard.Connection {
	r := s.own(i, a.r)
	for _, run := range lost {
		count := run[1] - run[0] + 1
		r.Lost += count
		r = s.conclude(i, r, ledger.Finding{
			Kind: ledger.KindLost, From: run[0], To: run[1], Count: count, At: a.instant(run[0]), Note: published,
		})
	}
	if a.unknown > 0 { // the number of a message was changed, say
		unknown := min(a.unknown, r.Received)
		r.Received -= unknown
		r.Corrupted += unknown
		r = s.conclude(i, r, ledger.Finding{Kind: ledger.KindCorrupted, From: r.Last, At: r.LastAt, Note: nobody})
	}
	r.Hidden += a.undecided
	return r
}

// What the notes of findings say of messages that somebody published, or nobody.
const (
	published = "published, and confirmed by the service"
	nobody    = "nobody published it"
)

// notOwed says why a message that was published and did not come is owed to nobody.
var notOwed = fmt.Sprintf("they were published within %s of the beginning or the end of a stream, or while there was none", format.Duration(joinWindow))

// Owed is the criterion that streams were owed most of what was published: a run in which what did not come was never owed
// proves nothing.
func (s *Streams) Owed() []Criterion {
	if s.Messages.Published == nil {
		return nil
	}
	early := Criterion{
		Name: "messages before they were published", Limit: "0", Actual: first(s.early, "none"), Pass: len(s.early) == 0,
		Why: "what is left of a run before stands in for what is lost", Reasons: s.early,
	}
	unowed := Criterion{
		Name: "messages that were owed", Limit: fmt.Sprintf("each stream %g %% of those of its topic", 100*leastOwed),
		Actual: fmt.Sprintf("%d did not come and were not owed", s.Messages.NotOwed), Pass: len(s.unclaimed) == 0,
		Why: "what nobody is owed can be lost unnoticed", Reasons: s.unclaimed,
	}
	return []Criterion{early.InDoubt(), unowed.InDoubt()}
}

// instant is when a message was sent, as an instant of the runner.
func (a *account) instant(number uint64) ledger.Instant {
	return time.Duration(a.messages[number-1].SentUS-a.began) * time.Microsecond
}
