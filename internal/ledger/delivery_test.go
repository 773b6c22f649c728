package ledger

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

func deliverAll(l *Ledger, at Instant, numbers ...uint64) {
	for _, n := range numbers {
		if l.Counting() == Numbered {
			l.Delivered(&Delivery{At: at, Number: n})
		} else {
			l.Noop(Noop{At: at, Number: n, Intact: true})
		}
	}
}

func openLedger(cfg *Config) *Ledger { return openLedgerAt(cfg, 1, 2) }

func openLedgerAt(cfg *Config, dial, headers Instant) *Ledger {
	l := New("a-1", cfg)
	l.Connecting(dial)
	l.Opened(headers)
	return l
}

func reconnect(l *Ledger, end, dial, headers Instant) {
	l.Closed(end, "server", true, true)
	l.Connecting(dial)
	l.Opened(headers)
}

func numberIf(numbered bool, number uint64) uint64 {
	if numbered {
		return number
	}
	return 0
}

func TestDeliveriesMayStartAtAnyNumber(t *testing.T) {
	for _, c := range []*struct {
		name    string
		cfg     Config
		numbers []uint64
		want    Counts
		first   uint64
		last    uint64
		holes   []Range
	}{
		{"one may arrive twice", Config{Repeats: true}, []uint64{7, 8, 8, 9}, Counts{Received: 3, Repeated: 1}, 7, 9, nil},
		{"two are swapped", Config{}, []uint64{7, 9, 8, 10}, Counts{Received: 4, Reordered: 1}, 7, 10, nil},
		{"the first two are swapped", Config{}, []uint64{8, 7, 9}, Counts{Received: 3, Reordered: 1}, 7, 9, nil},
		{"one long before the first", Config{AnyOrder: true}, []uint64{8, 5}, Counts{Received: 2}, 5, 8, []Range{{6, 7}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.cfg.Counting, c.cfg.Published = Numbered, true
			l := openLedger(&c.cfg)
			deliverAll(l, 10, c.numbers...)
			r := l.Record()
			if r.Counts != c.want || r.First != c.first || r.Last != c.last || !reflect.DeepEqual(r.Holes, c.holes) {
				t.Errorf("%+v, %d to %d, holes %v; want %+v, %d to %d, %v", r.Counts, r.First, r.Last, r.Holes, c.want, c.first, c.last, c.holes)
			}
		})
	}
}

func TestCorruptedMessageReplacesTheNextNumber(t *testing.T) {
	l := openLedger(&Config{Counting: Numbered, Published: true})
	l.Delivered(&Delivery{At: 9, CorruptionReason: "no JSON"}) // the number is unknown
	deliverAll(l, 10, 5)
	l.Delivered(&Delivery{At: 11, CorruptionReason: "no JSON"})
	deliverAll(l, 12, 7)
	if r := l.Record(); r.Received != 2 || r.Corrupted != 2 || r.Unplaced != 1 || r.Lost != 0 || r.Holes != nil || r.Findings[1].From != 6 {
		t.Errorf("the second corrupted message must have the number 6, and no number must be missing: %+v", r)
	}
}

// A service with a lifetime must end its streams on time, because a run with longer streams would not test reconnects.
func TestOverdueStreamIsFound(t *testing.T) {
	for lifetime, want := range map[time.Duration]uint64{60 * time.Second: 0, 62 * time.Second: 0, 64 * time.Second: 1} {
		for _, reason := range []string{"server", ReasonClient} {
			l := openLedgerAt(&Config{Counting: Numbered, Published: true, ClientEnds: true, Lifetime: time.Minute, MaxLifetime: time.Minute, LatenessLimit: time.Second}, 1, time.Second)
			if reason == ReasonClient {
				l.CloseRequested(time.Second + lifetime)
			}
			l.Closed(time.Second+lifetime, reason, true, reason != ReasonClient)
			if r := l.Record(); r.Overdue != want || r.EndedEarly != 0 {
				t.Errorf("stream of %s: %d overdue, want %d: %+v", lifetime, r.Overdue, want, r)
			}
		}
	}
}

// A busy client records the headers late. The service may have started the stream at the request, but not before.
func TestLifetimeStartsAtTheRequest(t *testing.T) {
	for requested, want := range map[time.Duration]uint64{time.Second: 0, 2 * time.Second: 0, 2*time.Second + 1: 1} {
		l := New("s0", &Config{Counting: Numbered, Published: true, ClientEnds: true, Lifetime: time.Minute})
		l.Connecting(time.Second) // the request is refused, so no stream starts
		l.Closed(time.Second, "status 503", false, true)
		l.Connecting(requested)
		l.Opened(2*time.Second + 1)
		l.Closed(62*time.Second, "server", true, true)
		if r := l.Record(); r.EndedEarly != want {
			t.Errorf("requested at %s: %d ended early, want %d: %+v", requested, r.EndedEarly, want, r)
		}
	}
}

func TestSpansAreTheTimesWithExpectedMessages(t *testing.T) {
	l := openLedgerAt(&Config{Counting: Numbered, Published: true, ClientEnds: true, Lifetime: time.Minute}, 1, 2*time.Second)
	l.SubscribedFrom(3 * time.Second)
	reconnect(l, 70*time.Second, 71*time.Second, 72*time.Second)
	l.Closed(75*time.Second, "reset", true, true) // before the end of its lifetime
	l.Connecting(76 * time.Second)
	l.IDReceived()
	l.Opened(77 * time.Second)
	deliverAll(l, 78*time.Second, 1)
	l.CloseRequested(90 * time.Second)
	l.Closed(91*time.Second, ReasonClient, false, false)
	r := l.Record()
	want := []Span{{From: 3 * time.Second, To: 70 * time.Second, Planned: true}, {From: 72 * time.Second, To: 75 * time.Second}, {From: 77 * time.Second, To: 90 * time.Second, Resumed: true, First: 1, Last: 1}}
	if !reflect.DeepEqual(r.Spans, want) {
		t.Errorf("spans %v, want %v", r.Spans, want)
	}
	if len(r.Outages) != 2 || !r.Outages[0].Planned || r.Outages[1].Planned {
		t.Errorf("the first end must be planned, the second must not: %+v", r.Outages)
	}
	if r.EndedEarly != 1 || r.Findings[0].Kind != KindEndedEarly || r.State != Completed || !r.ReceivedWithoutFault() {
		t.Errorf("one stream must have ended early, and the client must be completed without a fault: %+v", r)
	}
}

// Without the publisher it is unknown whether numbers between two streams were expected, unless the second stream
// resumed the first.
func TestNumbersBetweenTwoStreams(t *testing.T) {
	for _, c := range []struct {
		name               string
		published, resumed bool
		lost, inRecord     uint64
		holes              []Range
	}{
		{"by numbers", false, false, 0, 0, nil},
		{"published", true, false, 0, 0, []Range{{3, 4}}},
		{"published, resumed", true, true, 2, 0, []Range{{3, 4}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := openLedger(&Config{Counting: Numbered, Published: c.published, ClientEnds: true, Lifetime: time.Second})
			deliverAll(l, time.Second, 1, 2)
			if c.resumed {
				l.IDReceived()
			}
			reconnect(l, 2*time.Second, 3*time.Second, 4*time.Second)
			deliverAll(l, 5*time.Second, 5, 6)
			l.CloseRequested(6 * time.Second)
			l.Closed(6*time.Second, ReasonClient, false, false)
			if sums := l.Sums(); sums.Lost != c.lost || sums.Received != 4 || sums.ReceivedWithoutFault() != (c.lost == 0) {
				t.Errorf("sums %+v; want %d lost and 4 received", sums, c.lost)
			}
			if r := l.Record(); r.Lost != c.inRecord || !reflect.DeepEqual(r.Holes, c.holes) || r.State != Completed {
				t.Errorf("record %+v; want %d lost, holes %v, and a completed client", r, c.inRecord, c.holes)
			}
		})
	}
}

// A service may restart its numbers on an open stream, or repeat messages at the start of the next one.
func TestFindingOfADuplicateHasTheHighestNumber(t *testing.T) {
	l := openLedger(&Config{Counting: Numbered})
	deliverAll(l, 10, 1, 2, 3, 1, 2, 3)
	reconnect(l, 20, 30, 40)
	l.IDReceived()
	deliverAll(l, 50, 2)
	want := []Finding{
		{Kind: KindDuplicated, From: 1, To: 3, At: 10}, {Kind: KindDuplicated, From: 2, To: 3, At: 10}, {Kind: KindDuplicated, From: 3, At: 10},
		{Kind: KindDuplicated, From: 2, At: 50},
	}
	if got := l.Record().Findings; !reflect.DeepEqual(got, want) {
		t.Errorf("findings %+v, want %+v", got, want)
	}
}

// A corrupted message that is the first after a reconnect without resume may be any message.
func TestCorruptedMessageWithoutResumeHasNoNumber(t *testing.T) {
	l := openLedger(&Config{Counting: Numbered, Published: true})
	deliverAll(l, 10, 1)
	reconnect(l, 20, 30, 40)
	l.Delivered(&Delivery{At: 50, CorruptionReason: "no JSON"})
	deliverAll(l, 60, 7)
	if r := l.Record(); r.Unplaced != 1 || !reflect.DeepEqual(r.Holes, []Range{{2, 6}}) {
		t.Errorf("%d corrupted messages without a number, holes %v; want 1 and the hole 2 to 6", r.Unplaced, r.Holes)
	}
}

// If a service ends each stream after a lifetime, some clients have no stream at the end of a run. A client that is
// about to reconnect counts as open to the end.
func TestReconnectUnderWayAtTheEnd(t *testing.T) {
	for _, c := range []struct {
		name       string
		ends       func(l *Ledger)
		want       State
		endedEarly uint64
	}{
		{"waits", func(l *Ledger) {
			l.Closed(70*time.Second, "server", true, true)
			l.CloseRequested(71 * time.Second)
		}, Completed, 0},
		{"dials", func(l *Ledger) {
			l.Closed(70*time.Second, "server", true, true)
			l.Connecting(71 * time.Second)
			l.CloseRequested(71 * time.Second)
			l.Closed(71*time.Second, ReasonClient, false, false)
		}, Completed, 0},
		{"is refused after the run", func(l *Ledger) {
			l.Closed(70*time.Second, "server", true, true)
			l.Connecting(71 * time.Second)
			l.CloseRequested(71 * time.Second)
			l.Closed(72*time.Second, "status 503", false, false)
		}, Completed, 0},
		{"opens after the run", func(l *Ledger) {
			l.Closed(70*time.Second, "server", true, true)
			l.Connecting(71 * time.Second)
			l.CloseRequested(71 * time.Second)
			l.Opened(72 * time.Second)
			l.Closed(73*time.Second, ReasonClient, false, false)
		}, Completed, 0},
		{"was canceled shortly before", func(l *Ledger) {
			l.Closed(70*time.Second, "server", true, false)
			l.CloseRequested(70 * time.Second)
		}, Completed, 0},
		{"was refused", func(l *Ledger) {
			l.Closed(70*time.Second, "server", true, true)
			l.Connecting(71 * time.Second)
			l.Closed(71*time.Second, "status 503", false, true)
			l.CloseRequested(72 * time.Second)
		}, Waiting, 0}, // the verdict counts the client as dropped
		{"ended before its lifetime", func(l *Ledger) {
			l.Closed(7*time.Second, "server", true, true)
			l.CloseRequested(8 * time.Second)
		}, Waiting, 1},
		{"was silent", func(l *Ledger) {
			l.Closed(70*time.Second, "idle", false, true)
			l.CloseRequested(71 * time.Second)
		}, Waiting, 0},
		{"was interrupted", func(l *Ledger) { l.Closed(70*time.Second, ReasonInterrupted, false, false) }, Unfinished, 0},
		{"was interrupted early", func(l *Ledger) { l.Closed(7*time.Second, ReasonInterrupted, false, false) }, Unfinished, 0},
	} {
		for _, counting := range []Counting{Noops, Numbered, Nothing} {
			l := openLedger(&Config{Counting: counting, Interval: time.Second, ClientEnds: true, Lifetime: time.Minute})
			c.ends(l)
			if r := l.Record(); r.State != c.want || r.EndedEarly != c.endedEarly {
				t.Errorf("%s: state %s, want %s; %d ended early, want %d", c.name, r.State, c.want, r.EndedEarly, c.endedEarly)
			}
		}
	}
}

func TestSilenceIsTimeWithoutAnySignOfLife(t *testing.T) {
	l := openLedgerAt(&Config{Counting: Nothing, ClientEnds: true, Interval: time.Second}, 1, time.Second)
	l.RecordSign(3*time.Second, HeartbeatSign)
	l.RecordSign(8*time.Second, UnknownBlockSign)
	l.RecordSign(9*time.Second, ForeignSign)
	l.CloseRequested(10 * time.Second)
	l.Closed(30*time.Second, ReasonClient, false, false)
	r := l.Record()
	if r.MaxSilence != 5*time.Second || r.SilentFrom != 3*time.Second || r.Heartbeats != 1 || r.Uncounted != 1 || r.Foreign != 1 {
		t.Errorf("the longest silence must be 5 s from 3 s on, and each sign of life must be counted once: %+v", r)
	}
	if r.Missed()+r.Received != 0 || len(r.Findings) > 0 || r.State != Completed {
		t.Errorf("a ledger that counts Nothing must not count messages: %+v", r)
	}
}

// A hole between two streams that was filled later does not explain a hole on one stream.
func TestHoleBetweenStreamsHidesNoOtherHole(t *testing.T) {
	const s = time.Second
	l := openLedger(&Config{Counting: Numbered, Published: true, ClientEnds: true})
	deliverAll(l, 3*s, 1, 2)
	reconnect(l, 4*s, 5*s, 5*s)
	deliverAll(l, 6*s, 6, 3, 4, 5, 7, 9, 10)
	if r := l.Sums(); r.Lost != 1 {
		t.Errorf("lost %d, want 1", r.Lost)
	}
	if r := l.Record(); len(r.Holes) != 1 || r.Holes[0] != (Range{8, 8}) || r.Spans[1].First != 3 || r.Spans[1].Last != 10 {
		t.Errorf("holes %v, spans %v; want only the hole 8, and numbers 3 to 10 on the second stream", r.Holes, r.Spans)
	}
}

// An impossible number belongs to no message, and does not distort a sum.
func TestImpossibleNumberIsCorrupted(t *testing.T) {
	for _, number := range []uint64{0, 11, 9e18} {
		l := openLedger(&Config{Counting: Numbered, Published: true, MaxNumber: 10})
		d := Delivery{At: 9, Number: number}
		l.Delivered(&d)
		deliverAll(l, 10, 1, 2)
		l.Delivered(&Delivery{At: 20, Number: number})
		deliverAll(l, 30, 3, 4)
		if r := l.Record(); r.Counts != (Counts{Received: 4, Corrupted: 2}) || r.First != 1 || r.Last != 4 || r.Holes != nil || d.CorruptionReason == "" {
			t.Errorf("number %d must be corrupted twice, and have no other effect: %+v", number, r)
		}
	}
	l := openLedger(&Config{Counting: Numbered})
	deliverAll(l, 10, 5e12, 5e12+1, 9e18, 5e12+2)
	if r := l.Record(); r.Counts != (Counts{Received: 3, Corrupted: 1}) || r.Last != 5e12+2 {
		t.Errorf("a number far above the highest one must be corrupted, and have no other effect: %+v", r)
	}
}

// A corrupted message may have been an additional one. The message whose number it used is then not a duplicate.
func TestMessageReplacedByACorruptedOneIsNotADuplicate(t *testing.T) {
	for _, repeats := range []bool{false, true} {
		l := openLedger(&Config{Counting: Numbered, Published: true, Repeats: repeats})
		deliverAll(l, 10, 1)
		l.Delivered(&Delivery{At: 20, CorruptionReason: "no JSON"})
		deliverAll(l, 30, 2, 3)
		if r := l.Record(); r.Counts != (Counts{Received: 3, Corrupted: 1}) || r.Unplaced != 1 || r.Findings[0].From != 0 {
			t.Errorf("message 2 must be received, and the corrupted message must have no number: %+v", r)
		}
		deliverAll(l, 40, 2)
		if r := l.Record(); r.Duplicated+r.Repeated != 1 {
			t.Errorf("the second arrival of message 2 must be a copy: %+v", r)
		}
	}
}

// For any input, the counts and the numbers of a record must agree, because a merge rejects a record in which they do
// not.
func TestCountsAndNumbersOfARecordAgree(t *testing.T) {
	for seed := range uint64(20_000) {
		random := rand.New(rand.NewPCG(seed, 1))
		cfg := Config{Counting: Numbered, Published: true, ClientEnds: true, MaxNumber: 40, AnyOrder: seed%2 == 0, Repeats: seed%3 == 0}
		l := openLedger(&cfg)
		if seed%5 == 0 {
			l.messages.numbers.limit = 2
		}
		at := Instant(10)
		for range random.IntN(60) {
			at += Instant(random.IntN(10))
			switch random.IntN(12) {
			case 0:
				l.Delivered(&Delivery{At: at, CorruptionReason: "no JSON"})
			case 1:
				if random.IntN(2) == 0 {
					l.IDReceived()
				}
				reconnect(l, at, at, at)
			default:
				l.Delivered(&Delivery{At: at, Number: random.Uint64N(45)})
			}
		}
		r := l.Record()
		arrived := r.Unplaced - r.Lost
		if r.Last > 0 {
			arrived += r.Last - r.First + 1
		}
		for _, hole := range r.Holes {
			arrived -= hole[1] - hole[0] + 1
		}
		if arrived != r.Received+r.Corrupted || r.Unplaced > r.Corrupted || len(r.Spans) != r.Streams {
			t.Fatalf("seed %d: %d messages by numbers, %d by counts: %+v", seed, arrived, r.Received+r.Corrupted, r)
		}
	}
}

// If published messages may arrive in any order, a missing one may have been in transit when its stream ended. Package
// verdict decides whether that message was expected.
func TestHoleIsNotALossYetWithAnyOrder(t *testing.T) {
	for _, published := range []bool{true, false} {
		l := openLedger(&Config{Counting: Numbered, Published: published, ClientEnds: true, AnyOrder: true})
		deliverAll(l, 3*time.Second, 1, 2, 4)
		l.CloseRequested(4 * time.Second)
		l.Closed(4*time.Second, ReasonClient, false, false)
		if r := l.Sums(); (r.Lost == 0) != published || r.ReceivedWithoutFault() != published {
			t.Errorf("published %v: %d lost, faultless %v; the hole must be a loss only without a publisher", published, r.Lost, r.ReceivedWithoutFault())
		}
	}
}
