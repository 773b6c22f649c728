package ledger

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// The name of a case that a property test or the fuzzer found starts with the wrong result, such as "false pass".
func TestFaults(t *testing.T) {
	const late = interval * 6 / 10
	type want struct {
		missed, duplicated, reordered, corrupted, late uint64
		findings                                       []string // without lateness
	}
	cases := []struct {
		name string
		play func(p *tape) Record
		want want
	}{
		{"numbered, one twice", func(p *tape) Record {
			return p.regular(1, 5, true).noop(0, 5).regular(6, 9, true).end(sec)
		}, want{duplicated: 1, findings: []string{"duplicated 5"}}},
		{"numbered, the server skips two slots without numbering them", func(p *tape) Record {
			return p.regular(1, 4, true).noop(3*interval, 5).regular(6, 9, true).end(sec)
		}, want{missed: 2, late: 1, findings: []string{"unsent 5"}}},
		{"numbered, silent from the fifth on", func(p *tape) Record {
			return p.regular(1, 4, true).end(5*interval + 5*sec)
		}, want{missed: 5, findings: []string{"tail 5"}}},
		{"unnumbered, a loss and a later copy do not cancel out", func(p *tape) Record {
			return p.regular(1, 2, false).noop(2*interval, 0).regular(4, 6, false).noop(0, 0).regular(7, 9, false).end(sec)
		}, want{missed: 1, duplicated: 1, findings: []string{"unsent 3", "duplicated 6"}}},
		{"numbered, delayed for 20.3 intervals and then in one burst", func(p *tape) Record {
			p.regular(1, 3, true).wait(interval * 203 / 10)
			for n := uint64(4); n <= 23; n++ {
				p.noop(0, n)
			}
			return p.noop(interval*7/10, 24).regular(25, 30, true).end(sec)
		}, want{late: 20}},
		{"false pass: unnumbered, the first of a separate schedule is lost", func(p *tape) Record {
			return p.noop(interval*17/10, 0).regular(2, 9, false).end(sec)
		}, want{missed: 1, findings: []string{"unsent 1"}}},
		{"unnumbered, the first is just as late, but the second is on time", func(p *tape) Record {
			return p.noop(interval*17/10, 0).noop(interval*3/10, 0).regular(3, 9, false).end(sec)
		}, want{late: 1}},
		{"false pass: unnumbered, the first arrives twice", func(p *tape) Record {
			return p.noop(interval, 0).noop(interval*3/10, 0).noop(interval*7/10, 0).regular(3, 9, false).end(sec)
		}, want{duplicated: 1, findings: []string{"duplicated 1"}}},
		{"unnumbered, a corrupt one twice, 0.55 of an interval later", func(p *tape) Record {
			p.regular(1, 5, false).wait(interval)
			p.Noop(Noop{At: p.at, Data: "x"})
			p.wait(interval * 55 / 100)
			p.Noop(Noop{At: p.at, Data: "x"})
			return p.noop(interval*45/100, 0).regular(8, 9, false).end(sec)
		}, want{duplicated: 1, corrupted: 1, findings: []string{"corrupted 6", "duplicated 6"}}},
		{"false pass: numbered, the server is silent after a resume with many replays", func(p *tape) Record {
			p.regular(1, 3, true).resume(5*interval+5*sec).noop(0, 4)
			for n := uint64(5); n <= 8; n++ {
				p.noop(0, n)
			}
			return p.noop(10*sec, 9).noop(4*interval, 10).regular(11, 15, true).end(sec)
		}, want{missed: 3, late: 1, findings: []string{"unsent 10"}}},
		{"false pass: numbered, the resumed stream is silent at first", func(p *tape) Record {
			return p.regular(1, 3, true).resume(sec).noop(4*interval, 4).regular(5, 9, true).end(sec)
		}, want{missed: 3, late: 1, findings: []string{"unsent 4"}}},
		{"false pass: numbered, silence right before a resume", func(p *tape) Record {
			return p.regular(1, 3, true).noop(3*interval, 4).resume(sec).noop(interval-sec, 5).regular(6, 9, true).end(sec)
		}, want{missed: 2, late: 1, findings: []string{"unsent 4"}}},
		{"no finding: the losses of an outage", func(p *tape) Record {
			return p.regular(1, 3, true).resume(3*interval+5*sec).noop(2*sec, 1).regular(2, 9, true).end(sec)
		}, want{missed: 3, findings: []string{"restarted 3", "unsent 3"}}},
		{"false alarm: the first two are swapped, a slot apart", func(p *tape) Record {
			return p.noop(interval, 2).noop(interval, 1).regular(3, 9, true).end(sec)
		}, want{reordered: 1, findings: []string{"reordered 1"}}},
		{"false alarm: a message has the first number", func(p *tape) Record {
			p.NumberedEvent(p.at+sec, 1)
			return p.noop(interval, 2).regular(3, 9, true).end(sec)
		}, want{}},
		{"false pass: a message arrives twice", func(p *tape) Record {
			p.regular(1, 3, true)
			p.NumberedEvent(p.at+sec, 4)
			p.NumberedEvent(p.at+2*sec, 4)
			return p.noop(interval, 5).regular(6, 9, true).end(sec)
		}, want{duplicated: 1, findings: []string{"duplicated 4"}}},
		{"messages with a numbering over all devices do not make noops numbered", func(p *tape) Record {
			p.NumberedEvent(p.at+sec, 58213)
			return p.noop(interval, 58214).regular(58215, 58220, true).end(sec)
		}, want{}},
		{"overflow: the largest number", func(p *tape) Record {
			return p.regular(1, 3, true).noop(interval, math.MaxUint64).regular(5, 9, true).end(sec)
		}, want{corrupted: 1, findings: []string{"corrupted 4"}}},
		{"overflow: a message with the largest number", func(p *tape) Record {
			p.regular(1, 3, true)
			p.NumberedEvent(p.at+sec, math.MaxUint64)
			return p.regular(4, 9, true).end(sec)
		}, want{}},
		{"numbered, many in a row are late", func(p *tape) Record {
			return p.regular(1, 3, true).noop(interval+late, 4).regular(5, 30, true).noop(interval-late, 31).regular(32, 40, true).end(sec)
		}, want{late: 2}},
		{"numbered, many in a row are late, up to the end", func(p *tape) Record {
			return p.regular(1, 3, true).noop(interval+late, 4).regular(5, 30, true).end(interval / 10)
		}, want{late: 1}},
		{"numbered, later lateness and a fast clock do not fill a skipped slot", func(p *tape) Record {
			p.regular(1, 3, true).noop(2*interval, 4).regular(5, 8, true).wait(interval*27/10).noop(0, 9).noop(0, 10).noop(interval*3/10, 11)
			for n := uint64(12); n < 900; n++ {
				p.noop(interval-interval/1000, n)
			}
			return p.end(sec)
		}, want{missed: 1, late: 4, findings: []string{"unsent 9"}}},
		{"unnumbered, a stream without noops, and a short one after it", func(p *tape) Record {
			return p.wait(interval*15/2).resume(0).resume(0).noop(interval, 0).end(0)
		}, want{missed: 7, findings: []string{"unsent 0"}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := c.play(newTape())
			var findings []string
			for _, f := range r.Findings {
				if f.Kind != KindLate {
					findings = append(findings, fmt.Sprintf("%s %d", f.Kind, f.From))
				}
			}
			require.Equal(t, c.want, want{r.Missed(), r.Duplicated, r.Reordered, r.Corrupted, r.Late, findings}, "%+v", r)
			require.Empty(t, invariantViolation(r))
			require.Equal(t, Completed, r.State)
			require.Equal(t, len(findings) == 0, r.ReceivedWithoutFault())
		})
	}
}

// The data of a noop with an impossible number may be intact, so its finding states the reason.
func TestFindingOfAnImpossibleNumberHasTheReason(t *testing.T) {
	for number, want := range map[uint64]string{
		1 << 40: "its number is 1099511627776, but the highest number before it was 20",
		0:       "it has no number",
	} {
		r := newTape().regular(1, 20, true).noop(interval, number).regular(22, 60, true).end(0)
		require.True(t, r.Numbered)
		require.Len(t, r.Findings, 1)
		f := r.Findings[0]
		require.Equal(t, Finding{Kind: KindCorrupted, From: 21, At: f.At, Note: want, Source: SourceNumber}, f)
	}
}
