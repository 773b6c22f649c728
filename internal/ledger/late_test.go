package ledger

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Noops delayed by a saturated load generator or a slow server are late in any phase. None is missing if all
// numbers arrived.
func TestLatenessIsNeverALoss(t *testing.T) {
	t.Parallel()
	const late = interval * 6 / 10
	cases := map[string]func(p *tape) Record{
		"the last one is late, and the end is before the next due time": func(p *tape) Record {
			return p.regular(1, 8, true).noop(interval+late, 9).end(interval / 5)
		},
		"two in a row are late by more than half an interval": func(p *tape) Record {
			return p.regular(1, 3, true).noop(interval+late, 4).noop(interval-sec, 5).noop(interval-late, 6).regular(7, 12, true).end(sec)
		},
		"many in a row are late": func(p *tape) Record {
			p.regular(1, 3, true).noop(interval+late, 4)
			return p.regular(5, 30, true).noop(interval-late, 31).regular(32, 40, true).end(sec)
		},
		"many in a row are late, up to the end": func(p *tape) Record {
			p.regular(1, 3, true).noop(interval+late, 4)
			return p.regular(5, 30, true).end(interval / 10)
		},
	}
	for name, play := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := play(newTape(t))
			require.True(t, r.Faultless(), "%+v", r)
			require.Positive(t, r.Late)
		})
	}
}

// Later lateness or a fast clock must not hide a slot that the server skipped.
func TestLatenessDoesNotFillSkippedSlot(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	p.regular(1, 3, true).noop(2*interval, 4) // a slot without a noop, and without a number
	p.regular(5, 8, true).wait(interval*27/10).noop(0, 9).noop(0, 10).noop(interval*3/10, 11)
	for n := uint64(12); n < 900; n++ {
		p.noop(interval-interval/1000, n)
	}
	r := p.end(time.Second)
	require.EqualValues(t, 1, r.Missed(), "%+v", r)
}
