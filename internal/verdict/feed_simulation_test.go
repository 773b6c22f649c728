package verdict

import (
	"cmp"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/ledger"
)

// The dimensions of the simulation: each combination is a cell.
var (
	simulatedFaults  = []string{"clean", "lost", "duplicated", "swapped", "changed", "lost on a runner", "several lost", "silent"}
	simulatedClients = []string{
		"steady", "late joins", "one lags", "half lag", "one reconnects", "one resumes", "several reconnect", "several resume",
		"all reconnect", "all resume", "history",
	}
	simulatedContents = []string{"unique", "50 values", "5 values", "2 values", "constant", "runs of equal values"}
	simulatedLayouts  = map[string][]int{"one runner": {0, 0, 0, 0, 0, 0}, "two runners": {0, 0, 0, 0, 1, 1}, "a single client": {0, 1, 1, 1, 1, 1}}
)

// A simulatedFeed is a run in which the clients of one feed are compared with each other.
type simulatedFeed struct {
	fault, clients, content, layout string

	random   *rand.Rand
	sent     []feedMessage
	periods  [][]feedPeriod // of each client
	lags     []time.Duration
	received []map[int][]uint64 // of each client: the contents received in place of a message, by its index
	faulty   []int              // clients with the fault
	want     [4]uint64          // missed, duplicated, reordered, corrupted
}

type feedMessage struct {
	at  time.Duration
	sum uint64
}

// A feedPeriod is the time of one stream. history is the number of earlier messages that the stream begins with.
type feedPeriod struct {
	from, to time.Duration
	resumes  bool
	history  int
}

// A feedStep is a step of a client: a message arrives, or a stream opens or ends.
type feedStep struct {
	at     time.Duration
	client int
	do     func(l *ledger.Ledger)
}

const (
	feedLength = 20 * time.Second
	feedEdge   = 3 * time.Second // no fault happens closer than this to the start or the end of a stream
)

func (f *simulatedFeed) name() string {
	return strings.Join([]string{f.fault, f.clients, f.content, f.layout}, ", ")
}

// prepare draws the messages and streams of a seed. It reports whether the fault is possible.
func (f *simulatedFeed) prepare(seed uint64) bool {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(f.name()))
	f.random = rand.New(rand.NewPCG(seed, hash.Sum64())) // #nosec G404 -- no secret
	f.drawMessages()
	f.drawClients()
	return f.drawFault()
}

func (f *simulatedFeed) randomUpTo(limit time.Duration) time.Duration {
	return time.Duration(f.random.Int64N(int64(limit)))
}

func (f *simulatedFeed) drawMessages() {
	interval := []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond}[f.random.IntN(3)]
	values := map[string]int{"50 values": 50, "5 values": 5, "2 values": 2, "constant": 1}[f.content]
	sum := uint64(1_000)
	for at := interval; at < feedLength; at += interval/2 + f.randomUpTo(interval) {
		switch {
		case f.content == "unique":
			sum++
		case values > 0:
			sum = 1 + uint64(f.random.IntN(values)) // #nosec G115 -- positive
		case f.random.IntN(3) > 0:
			sum += uint64(f.random.IntN(21)) - 10 // #nosec G115 -- positive
		}
		f.sent = append(f.sent, feedMessage{at, sum})
	}
}

func (f *simulatedFeed) drawClients() {
	count := len(simulatedLayouts[f.layout])
	f.lags, f.periods = make([]time.Duration, count), make([][]feedPeriod, count)
	one, half := f.random.IntN(count), f.random.IntN(2)
	reconnects := make([]time.Duration, 1+f.random.IntN(2))
	for i := range reconnects {
		reconnects[i] = 7*time.Second*time.Duration(i) + feedEdge + time.Second + f.randomUpTo(2*time.Second)
	}
	for client := range count {
		whole := feedPeriod{from: 100*time.Millisecond + f.randomUpTo(200*time.Millisecond), to: feedLength}
		affected := strings.HasPrefix(f.clients, "all") || client == one || !strings.HasPrefix(f.clients, "one") && f.random.IntN(2) == 0
		switch {
		case f.clients == "late joins" && affected:
			whole.from += f.randomUpTo(6 * time.Second)
		case strings.HasSuffix(f.clients, "lags") && affected, f.clients == "half lag" && client%2 == half:
			f.lags[client] = 2 * time.Second
		case f.clients == "history":
			whole.history = 5
			if affected {
				whole.from += f.randomUpTo(6 * time.Second)
			}
		}
		f.periods[client] = []feedPeriod{whole}
		if affected && (strings.Contains(f.clients, "reconnect") || strings.Contains(f.clients, "resume")) {
			f.reconnect(client, reconnects)
		}
	}
}

// reconnect disconnects and reconnects a client at about the given times.
func (f *simulatedFeed) reconnect(client int, times []time.Duration) {
	for _, at := range times {
		last := &f.periods[client][len(f.periods[client])-1]
		last.to = at + f.randomUpTo(50*time.Millisecond)
		f.periods[client] = append(f.periods[client], feedPeriod{
			from: last.to + 50*time.Millisecond + f.randomUpTo(time.Second), to: feedLength, resumes: strings.Contains(f.clients, "resume"),
		})
	}
}

// candidates returns the indexes of the messages that the given clients and most others receive, far from the start and
// the end of their streams.
func (f *simulatedFeed) candidates(clients []int) (candidates []int) {
	for n, m := range f.sent {
		inside := func(client int, edge time.Duration) bool {
			return slices.ContainsFunc(f.periods[client], func(p feedPeriod) bool {
				return m.at > p.from+edge && m.at+f.lags[client]+edge < p.to
			})
		}
		receivers := 0
		for client := range f.periods {
			if inside(client, feedEdge/2) {
				receivers++
			}
		}
		if !slices.ContainsFunc(clients, func(client int) bool { return !inside(client, feedEdge) }) && n+1 < len(f.sent) && 2*receivers > len(f.periods) {
			candidates = append(candidates, n)
		}
	}
	return candidates
}

// drawFault draws the fault of some clients. It reports whether the fault is possible.
func (f *simulatedFeed) drawFault() bool {
	f.received = make([]map[int][]uint64, len(f.periods))
	switch f.fault {
	case "clean":
		return true
	case "lost on a runner":
		return f.drawRunnerFault()
	case "several lost":
		for range 3 {
			if !f.drawClientFault("lost") {
				return false
			}
		}
		f.want = [4]uint64{}
		for _, lost := range f.received {
			f.want[0] += uint64(len(lost))
		}
		return true
	}
	return f.drawClientFault(f.fault)
}

// drawRunnerFault draws a message that no client of the runner with the fewest clients receives.
func (f *simulatedFeed) drawRunnerFault() bool {
	runners := simulatedLayouts[f.layout]
	fewest := 1 - runners[2]
	for client, r := range runners {
		if r == fewest {
			f.faulty = append(f.faulty, client)
		}
	}
	candidates := f.candidates(f.faulty)
	if len(f.faulty) == 0 || len(candidates) == 0 {
		return false
	}
	at := candidates[f.random.IntN(len(candidates))]
	for _, client := range f.faulty {
		f.receive(client, at)
	}
	f.want = [4]uint64{uint64(len(f.faulty)), 0, 0, 0}
	return true
}

func (f *simulatedFeed) drawClientFault(fault string) bool {
	client := f.random.IntN(len(f.periods))
	candidates := f.candidates([]int{client})
	if fault == "swapped" { // messages with the same content are interchangeable
		candidates = slices.DeleteFunc(candidates, func(n int) bool { return f.sent[n].sum == f.sent[n+1].sum })
	}
	if len(candidates) == 0 {
		return false
	}
	f.faulty = append(f.faulty, client)
	at := candidates[f.random.IntN(len(candidates))]
	sum := f.sent[at].sum
	switch fault {
	case "lost":
		f.receive(client, at)
		f.want = [4]uint64{1, 0, 0, 0}
	case "duplicated":
		f.receive(client, at, sum, sum)
		f.want = [4]uint64{0, 1, 0, 0}
	case "swapped":
		f.receive(client, at)
		f.receive(client, at+1, f.sent[at+1].sum, sum)
		f.want = [4]uint64{0, 0, 1, 0}
	case "changed":
		f.receive(client, at, 1_000_000)
		f.want = [4]uint64{0, 0, 0, 1}
	case "silent":
		for n := candidates[len(candidates)/2]; n < len(f.sent); n++ {
			f.receive(client, n)
		}
	}
	return true
}

// receive sets the contents that a client receives in place of a message.
func (f *simulatedFeed) receive(client, n int, sums ...uint64) {
	if f.received[client] == nil {
		f.received[client] = map[int][]uint64{}
	}
	f.received[client][n] = sums
}

func (f *simulatedFeed) steps(client int) (steps []feedStep) {
	add := func(at time.Duration, do func(l *ledger.Ledger)) {
		steps = append(steps, feedStep{at, client, do})
	}
	next := 0 // the message after the last one that arrived
	for i, p := range f.periods[client] {
		add(p.from, func(l *ledger.Ledger) {
			l.Connecting(p.from - 20*time.Millisecond)
			if p.resumes {
				l.IDReceived()
			}
			l.Opened(p.from)
		})
		if !p.resumes {
			next, _ = slices.BinarySearchFunc(f.sent, p.from, func(m feedMessage, at time.Duration) int { return cmp.Compare(m.at, at) })
			next = max(next-p.history, 0)
		}
		for at := p.from + 5*time.Millisecond; next < len(f.sent); next++ {
			m := f.sent[next]
			if m.at >= p.from {
				at = max(at, m.at+f.lags[client]+f.randomUpTo(5*time.Millisecond))
			}
			at += time.Millisecond
			if at >= p.to {
				break
			}
			sums, changed := f.received[client][next]
			if !changed {
				sums = []uint64{m.sum}
			}
			for _, sum := range sums {
				add(at, func(l *ledger.Ledger) { l.DeliveredUnnumbered(ledger.Fingerprint{At: at, Sum: sum}) })
			}
		}
		add(p.to, func(l *ledger.Ledger) {
			if i+1 < len(f.periods[client]) {
				l.Closed(p.to, "server", true, true)
				return
			}
			l.CloseRequested(p.to)
			l.Closed(p.to, ledger.ReasonClient, false, false)
		})
	}
	return steps
}

func (f *simulatedFeed) judge() *Verdict {
	base, layout := newSharedRun(), simulatedLayouts[f.layout]
	p := base.plan
	p.Connections, p.Runners, p.Reconnect = len(layout), 1+slices.Max(layout), true
	base.cfg.Resumes = strings.Contains(f.clients, "resume")
	return judgeStreams(mergeFeed(p, &base.cfg, layout, func(ledgers []*ledger.Ledger) {
		var all []feedStep
		for client := range ledgers {
			all = append(all, f.steps(client)...)
		}
		slices.SortStableFunc(all, func(a, b feedStep) int { return cmp.Compare(a.at, b.at) })
		for _, step := range all {
			step.do(ledgers[step.client])
		}
	}), nil, Evidence{})
}
