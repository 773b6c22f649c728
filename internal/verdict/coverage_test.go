package verdict

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// A clientLife is a simulated client with several streams. Times are in milliseconds since the runner started.
type clientLife struct {
	anyOrder bool
	streams  []lifeStream
	messages []lifeMessage // by number − 1
}

type lifeStream struct {
	open, end int
	resumes   bool // resumes the previous stream
}

type lifeMessage struct {
	sent, answered int
	confirmed      bool
	stream         int // the stream that received it; -1: none
}

// drawLife draws a client whose streams have about equal lengths. Each message arrives on the open stream, or on the
// next stream if that stream resumes. Some messages are lost.
func drawLife(r *rand.Rand) *clientLife {
	l := &clientLife{anyOrder: r.IntN(4) == 0}
	lifetime, interval, loss := 500+r.IntN(6000), 100+r.IntN(1500), r.Float64()*float64(r.IntN(2))
	at := 1 + r.IntN(3000)
	for at < 20_000 {
		s := lifeStream{open: at, end: min(at+lifetime/2+r.IntN(lifetime), 25_000), resumes: len(l.streams) > 0 && r.IntN(3) > 0}
		l.streams = append(l.streams, s)
		at = s.end + 1 + r.IntN(1500)
	}
	for sent := 2000 + r.IntN(1000); sent < 20_000; {
		m := lifeMessage{sent: sent, answered: sent + 1 + r.IntN(3)*r.IntN(500), confirmed: r.IntN(20) > 0, stream: -1}
		for i, s := range l.streams {
			if m.sent > s.end {
				continue
			}
			if m.sent >= s.open || s.resumes {
				m.stream = i
			}
			break
		}
		if r.Float64() < loss || !m.confirmed {
			m.stream = -1
		}
		l.messages = append(l.messages, m)
		sent = m.answered + 1 + r.IntN(interval)
	}
	return l
}

// Classes of messages, by what their loss counts as.
const (
	classNotExpected = iota
	classLost
	classUndecided
)

// classify returns the class of a message according to docs/accounting.md. Its algorithm is simple and slow.
func (l *clientLife) classify(index int) int {
	const margin = 1000
	m, class := l.messages[index], classNotExpected
	if !m.confirmed {
		return classNotExpected
	}
	for first := 0; first < len(l.streams); {
		next := first + 1 // the first later stream that does not resume the previous one
		for next < len(l.streams) && l.streams[next].resumes {
			next++
		}
		end := l.streams[next-1].end
		if last := l.streams[next-1]; next > first+1 && next == len(l.streams) && last.end-last.open < margin {
			end = l.streams[next-2].end
		}
		lowerArrived, higherArrived := false, false
		for other, o := range l.messages {
			if o.stream >= first && o.stream < next {
				lowerArrived, higherArrived = lowerArrived || other < index, higherArrived || other > index
			}
		}
		switch from, to := l.streams[first].open+margin, end-margin; {
		case lowerArrived && higherArrived && !l.anyOrder, m.sent >= from && m.sent <= to && m.answered <= to:
			return classLost
		case m.sent >= from && m.sent <= to:
			class = classUndecided
		}
		first = next
	}
	return class
}

// account records the streams of the client in a ledger. It returns the account of the verdict, and the numbers of the
// confirmed messages.
func (l *clientLife) account() (a account, confirmed []uint64) {
	at := func(ms int) ledger.Instant { return time.Duration(ms) * time.Millisecond }
	cfg := ledger.Config{Counting: ledger.Numbered, Published: true, ClientEnds: true, AnyOrder: l.anyOrder, Interval: time.Second}
	client := ledger.New("s-0", &cfg)
	for i, s := range l.streams {
		client.Connecting(at(s.open))
		if s.resumes {
			client.IDReceived()
		} else {
			client.IDReset(at(s.open), "")
		}
		client.Opened(at(s.open))
		for index, m := range l.messages {
			if m.stream == i {
				client.Delivered(&ledger.Delivery{At: at(max(m.sent, s.open)), Number: uint64(index) + 1})
			}
		}
		if i == len(l.streams)-1 {
			client.CloseRequested(at(s.end))
			client.Closed(at(s.end), ledger.ReasonClient, false, false)
		} else {
			client.Closed(at(s.end), "server", true, true)
		}
	}
	const started = 1_700_000_000_000_000
	messages := make([]shard.Message, len(l.messages))
	for i, m := range l.messages {
		messages[i] = shard.Message{SentUS: started + 1000*int64(m.sent), AnsweredUS: started + 1000*int64(m.answered), State: shard.Refused}
		if m.confirmed {
			messages[i].State = shard.Confirmed
		}
	}
	s := &Streams{m: &shard.Merged{Runners: []shard.Runner{{StartedUS: started}}, Service: shard.Service{AnyOrder: l.anyOrder}}}
	return s.accountOf(&shard.Connection{Record: client.Record()}, messages, nil), confirmedNumbers(messages)
}

// A message counts as checked if and only if its loss would be reported, as missed or as undetectable. STREAMS is the
// number of simulated clients:
// STREAMS=1000000 go test -run LossesOfCheckedMessages ./internal/verdict
func TestLossesOfCheckedMessagesAreDetectable(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for n := range uint64(environment(t, "STREAMS", 5000)) {
		l := drawLife(rand.New(rand.NewPCG(seed, n)))
		want := map[string]uint64{}
		for index, m := range l.messages {
			class := l.classify(index)
			if class != classNotExpected {
				want["checked"]++
			}
			if m.stream < 0 && m.confirmed {
				want[[]string{"not expected", "lost", "undecided"}[class]]++
			}
		}
		a, numbers := l.account()
		got := map[string]uint64{"checked": uint64(a.checkedMessages(numbers)), "lost": 0}
		for _, lost := range a.lostNumbers() {
			got["lost"] += lost[1] - lost[0] + 1
		}
		got["not expected"], got["undecided"] = a.notExpected, a.undecided
		for _, name := range []string{"checked", "lost", "not expected", "undecided"} {
			require.Equal(t, want[name], got[name], "%s, PCG(%d, %d): %+v", name, seed, n, *l)
		}
	}
}

// Messages published while a client was disconnected at the end of the run were not checked, unless their loss would be
// reported as undetectable.
func TestMessagesOfTheLastOutageAreNotChecked(t *testing.T) {
	t.Parallel()
	a := account{r: &shard.Connection{}, spans: []span{{from: 0, to: 6}}, lastEnd: 6}
	var numbers []uint64
	for i := range uint64(10) {
		a.messages = append(a.messages, shard.Message{State: shard.Confirmed, SentUS: int64(i) + 1})
		numbers = append(numbers, i+1)
	}
	require.Equal(t, 6, a.checkedMessages(numbers))
	a.disconnected = true
	require.Equal(t, 6, a.checkedMessages(numbers))
	a.isMarginLong = true
	require.Equal(t, 10, a.checkedMessages(numbers), "messages whose loss would be reported as undetectable must count as checked")
}
