package model

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOrderIsReadFromText(t *testing.T) {
	config := Order{Chunks: 40, Delay: 10 * time.Millisecond}
	order, err := config.applyText("Tell me of soak tests.\n  soak id=run-17 ttft=2s fault=truncate@20 other=1\nsoak delay=0s")
	require.NoError(t, err)
	require.Equal(t, Order{ID: "run-17", Chunks: 40, TTFT: 2 * time.Second, Fault: Fault{Truncate, 20}, setsFault: true}, order)
	order, err = config.applyText("not a soak id=1")
	require.NoError(t, err)
	require.Equal(t, config, order)
}

func TestOrderIsReadFromTheLastUserMessage(t *testing.T) {
	for body, want := range map[string]string{
		`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}`:                                  "a",
		`{"messages":[{"role":"user","content":"a"},{"role":"user","content":[{"type":"text","text":"b"},{"text":"c"}]}]}`: "b\nc",
		`{"input":"a"}`: "a",
		`{"input":[{"role":"user","content":[{"type":"input_text","text":"b"}]},{"type":"reasoning"}]}`: "b",
		`{"messages":[{"role":"system","content":"a"}]}`:                                                "",
	} {
		request, err := readRequest([]byte(body))
		require.NoError(t, err)
		require.Equal(t, want, request.text)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`{"messages":[{"role":"user","content":"soak id=a fault=swap@1 chunks=1"}]}`)
	f.Add(`{"input":"soak fault=length@3"}`)
	f.Fuzz(func(t *testing.T, body string) {
		a, err := New(noDelays()).read([]byte(body))
		if err != nil {
			return
		}
		require.NoError(t, checkID(a.ID))
		require.GreaterOrEqual(t, a.Fault.K, 0)
		require.LessOrEqual(t, a.Fault.K, a.Chunks)
	})
}

func TestSharesDependOnlyOnSeedAndID(t *testing.T) {
	shares, err := AddShares(nil, "truncate@20:0.01; reset:0.02")
	require.NoError(t, err)
	count := func(seed uint64) (faults map[string]int) {
		faults = map[string]int{}
		for i := range 10_000 {
			faults[draw(shares, seed, fmt.Sprintf("run-%d", i)).String()]++
		}
		return faults
	}
	first := count(1)
	require.Equal(t, first, count(1))
	require.NotEqual(t, first, count(2))
	require.InDelta(t, 100, first["truncate@20"], 40)
	require.InDelta(t, 200, first[Fault{Reset, middle}.String()], 60)
}

func TestInvalidSharesAreRejected(t *testing.T) {
	for text, want := range map[string]string{
		"fall:0.1": "must be one of", "drop@0": "from 1", "truncate@x": "number", "reset:2": "from 0 to 1",
		"reset:NaN": "from 0 to 1", "reset:0.6;cut:0.6": "at most 1",
	} {
		_, err := AddShares(nil, text)
		require.ErrorContains(t, err, want)
	}
}

// The constants of the kinds and the list of their names have the same order.
func TestNamesOfKinds(t *testing.T) {
	require.Len(t, kinds, int(Failed)+1)
	require.Equal(t, "429", Busy.String())
	require.Equal(t, "corrupt", Corrupt.String())
	require.Equal(t, "stall", Stall.String())
	for _, name := range kinds[1:] {
		require.Contains(t, Help, name)
	}
}

func TestLedgerKeepsTheLastRequests(t *testing.T) {
	l := ledger{capacity: 3}
	for i := range 5 {
		l.add(Record{ID: fmt.Sprint(i)})
	}
	l.put(1, Record{ID: "too old"})
	l.put(3, Record{ID: "3", Outcome: Complete})
	all := slices.Collect(l.records(""))
	require.Len(t, all, 3)
	require.Equal(t, "2", all[0].ID)
	require.Equal(t, Complete, all[1].Outcome)
	require.Len(t, slices.Collect(l.records("4")), 1)
}

// When the server stops, stalled answers end immediately, and other answers have time to end.
func TestStoppedServerDrains(t *testing.T) {
	config := noDelays()
	config.DrainWait = testTimeout
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	url := "http://" + l.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	server, served := New(config), make(chan error, 1)
	go func() { served <- server.Serve(ctx, l) }()
	stalledResponse := post(t, url, chat.path, "id=stalled fault=stall@1", true)
	slowResponse := post(t, url, chat.path, "id=slow chunks=5 delay=50ms", true)
	stop()
	require.Equal(t, "clean", stalledResponse.endText(t))
	require.Equal(t, "clean", slowResponse.endText(t))
	require.Equal(t, account{Numbers: []int{1, 2, 3, 4, 5}, Terminals: 1}, count(slowResponse.body(), chat.path, "slow"))
	require.NoError(t, <-served)
	require.Equal(t, Interrupted, server.ledger.ring[0].Outcome)
	_, err = http.Get(url + "/healthz")
	require.Error(t, err)
}

func TestChunksAllocateNothing(t *testing.T) {
	for _, api := range apis {
		a := &answer{Order: Order{ID: "run-17", Chunks: 40, Size: 50}, request: request{model: []byte(`"m"`), stream: true}}
		b := make([]byte, 0, 4096)
		require.Zero(t, testing.AllocsPerRun(100, func() { b = a.fill(b[:0], api.chunk, 17) }), api.name)
	}
}
