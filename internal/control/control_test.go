package control

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// The first event arrives immediately, the others once per second.
func TestReferenceSendsOneEventPerSecond(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- Serve(ctx, listener) }()
	start := time.Now()
	resp, err := http.Get("http://" + listener.Addr().String()) //nolint:noctx // the response ends with the server
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, "text/event-stream", resp.Header.Get("Content-Type"))
	parser := eventstream.New(resp.Body)
	var account Account
	for range 3 {
		var e eventstream.Event
		require.NoError(t, parser.Next(&e))
		arrival, ok := account.Note(time.Now(), e.ID, e.Data)
		require.True(t, ok, "%q %q", e.ID, e.Data)
		require.Zero(t, arrival.Lost)
	}
	assert.GreaterOrEqual(t, time.Since(start), 1900*time.Millisecond)
	assert.Equal(t, uint64(3), account.number)
	stop()
	require.NoError(t, <-result)
}

func TestAccountAttributesDelays(t *testing.T) {
	t.Parallel()
	start := time.Now()
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	type event struct {
		at        float64
		id        int
		reference time.Duration // delay of the reference
		late      time.Duration
		lost      uint64
		rejected  bool
	}
	for name, events := range map[string][]event{
		"on time":                         {{at: 0, id: 1}, {at: 1, id: 2}, {at: 2, id: 3}},
		"the client stalled":              {{at: 0, id: 1}, {at: 3, id: 2, late: 2 * time.Second}, {at: 3, id: 3, late: time.Second}, {at: 3, id: 4}},
		"the reference stalled":           {{at: 0, id: 1}, {at: 3, id: 2, reference: 2 * time.Second}, {at: 3, id: 3, reference: time.Second}, {at: 3, id: 4}},
		"both stalled, the client longer": {{at: 0, id: 1}, {at: 3, id: 2, reference: 500 * time.Millisecond, late: 1500 * time.Millisecond}},
		"the first event was late":        {{at: 2, id: 1}, {at: 2, id: 2}, {at: 3, id: 3}, {at: 5, id: 4, late: time.Second}},
		"numbers were skipped":            {{at: 0, id: 1}, {at: 4, id: 5, lost: 3}},
		"the first events were not read":  {{at: 0, id: 7}, {at: 1, id: 8}},
		"a duplicate":                     {{at: 0, id: 1}, {at: 1, id: 1, rejected: true}, {at: 1, id: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var a Account
			for i, e := range events {
				got, ok := a.Note(at(e.at), []byte(strconv.Itoa(e.id)), []byte("late_us="+strconv.FormatInt(e.reference.Microseconds(), 10)))
				require.Equal(t, !e.rejected, ok, "event %d", i)
				require.InDelta(t, e.late, got.Late, float64(5*time.Millisecond), "event %d", i)
				require.Equal(t, e.lost, got.Lost, "event %d", i)
				if ok {
					require.Equal(t, e.reference, got.Reference)
				}
			}
		})
	}
	var a Account
	for _, text := range []string{"", "x", "-1", "99999999999999999999"} {
		_, ok := a.Note(start, []byte(text), []byte("late_us=0"))
		require.False(t, ok, text)
		_, ok = a.Note(start, []byte("1"), []byte("late_us="+text))
		require.False(t, ok, text)
	}
	// Data of other services that number their events, and values that no reference sends.
	for _, data := range []string{"0", "1700000000000", "late_us=3600000001", "late_us=9007199254740991"} {
		_, ok := a.Note(start, []byte("1"), []byte(data))
		require.False(t, ok, data)
	}
}

// The delay of a reference cannot exceed the time since the request. A greater value would make all other events late.
func TestDelayBeforeTheRequestIsRejected(t *testing.T) {
	t.Parallel()
	start := time.Now()
	a := Account{RequestedAt: start}
	for i, e := range []struct {
		at   time.Duration
		late string
		ok   bool
		want time.Duration
	}{
		{10 * time.Millisecond, "0", true, 0},
		{1010 * time.Millisecond, "1200000", false, 0},
		{3010 * time.Millisecond, "1000000", true, time.Second}, // number 3, due after 2 s
		{3010 * time.Millisecond, "0", true, 0},
		{4010 * time.Millisecond, "3600000000", false, 0},
	} {
		got, ok := a.Note(start.Add(e.at), []byte(strconv.Itoa(i+1)), []byte("late_us="+e.late))
		require.Equal(t, e.ok, ok, "event %d", i+1)
		require.Equal(t, e.want, got.Reference)
		require.Less(t, got.Late, 10*time.Millisecond, "event %d", i+1)
	}
}

func TestExpectedAndMissingEvents(t *testing.T) {
	t.Parallel()
	start := time.Now()
	var a Account
	require.Zero(t, a.Due(start.Add(time.Hour)), "no event must be due before the first one arrives")
	_, ok := a.Note(start, []byte("1"), []byte("late_us=0"))
	require.True(t, ok)
	assert.Equal(t, uint64(1), a.Due(start))
	assert.Zero(t, a.Due(start))
	assert.Equal(t, uint64(5), a.Due(start.Add(5*time.Second)))
	assert.Equal(t, uint64(4), a.Missing(start.Add(5*time.Second), time.Second))
	for n := 2; n <= 6; n++ {
		_, ok = a.Note(start.Add(5*time.Second), []byte(strconv.Itoa(n)), []byte("late_us=0"))
		require.True(t, ok)
	}
	assert.Zero(t, a.Due(start.Add(5*time.Second)))
	assert.Zero(t, a.Missing(start.Add(5*time.Second), 0))
	// A clock that differs by 100 ppm makes no event late, even after a day.
	for n := 7; n <= 86400; n++ {
		got, ok := a.Note(start.Add(time.Duration(float64(n-1)*1.0001*float64(time.Second))), []byte(strconv.Itoa(n)), []byte("late_us=0"))
		require.True(t, ok)
		require.Less(t, got.Late, 10*time.Millisecond)
	}
}
