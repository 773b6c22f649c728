package ledger

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestLedgerUsesAtMost650Bytes(t *testing.T) {
	t.Parallel()
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("the limits apply to 64-bit systems")
	}
	for name, c := range map[string]struct{ size, limit uintptr }{
		"counting noops":   {unsafe.Sizeof(Ledger{}) + unsafe.Sizeof(numberCounter{}), 650},
		"counting numbers": {unsafe.Sizeof(Ledger{}) + unsafe.Sizeof(deliveries{}), 650},
	} {
		require.LessOrEqual(t, c.size, c.limit, name)
	}
}

// A ledger without a fault consists of two objects, regardless of the length of its stream. Other parts are allocated
// on first use.
func TestFaultlessStreamAllocatesNothing(t *testing.T) { //nolint:paralleltest // it counts the allocations of the process
	l := openLedger(&Config{Interval: testInterval, LatenessLimit: testInterval})
	for n := range uint64(100) {
		l.Noop(Noop{At: Instant(n+1) * testInterval, Number: n + 1, Intact: true})
	}
	require.Nil(t, l.extra)
	require.Nil(t, l.outage)
	require.Nil(t, l.clock.faults)
	require.Nil(t, l.clock.pace.gauge)
	require.Nil(t, l.byNumber.faults)
	at := Instant(101) * testInterval
	number := uint64(101)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		l.Noop(Noop{At: at, Number: number, Intact: true})
		at, number = at+testInterval, number+1
	}))
}

const testInterval = 1e9

func TestFollowingALogAllocatesNothing(t *testing.T) { //nolint:paralleltest // it counts the allocations of the process
	cfg := &Config{Interval: testInterval, Counting: Numbered, Published: true, AnyOrder: true}
	log := NewLog()
	first, second := New("a", cfg), New("b", cfg)
	for _, l := range []*Ledger{first, second} {
		l.UseLog(log)
		l.Connecting(1)
		l.Opened(2)
	}
	for n := range uint64(200) {
		first.DeliveredUnnumbered(Fingerprint{At: Instant(n+3) * testInterval, Sum: n})
	}
	n := uint64(0)
	follow := func() {
		second.DeliveredUnnumbered(Fingerprint{At: Instant(n+4) * testInterval, Sum: n})
		n++
	}
	follow()
	follow()
	require.Zero(t, testing.AllocsPerRun(100, follow))
	require.LessOrEqual(t, unsafe.Sizeof(cursor{})+unsafe.Sizeof(uintptr(0)), uintptr(64))
}
