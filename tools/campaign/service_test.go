package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const testInterval = 60 * time.Millisecond

func testService(t *testing.T, spec serviceSpec, s strike) (*service, string) {
	t.Helper()
	spec.Schedule.Every, spec.Schedule.Phase = testInterval, phaseConnect
	if spec.Lines == "" {
		spec.Lines = "\n"
	}
	l, err := listen()
	require.NoError(t, err)
	service := startService(spec, s, l)
	t.Cleanup(service.stop)
	return service, "http://" + l.Addr().String()
}

// heard opens the stream of a device, has its end asked for after so long, and returns its data
// fields and ids.
func heard(t *testing.T, url, id string, after time.Duration) (data, ids []string, err error) {
	t.Helper()
	client := http.Client{Timeout: after + 2*time.Second} // where the wire swallows the end
	resp, err := client.Get(url + "/event/connect?id=" + id)
	require.NoError(t, err)
	defer resp.Body.Close()
	timer := time.AfterFunc(after, func() {
		req, _ := http.NewRequest(http.MethodDelete, url+"/event/forcedisconnect?id="+id, nil)
		if gone, err := http.DefaultClient.Do(req); err == nil {
			_ = gone.Body.Close()
		}
	})
	defer timer.Stop()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			data = append(data, text)
		}
		if text, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			ids = append(ids, text)
		}
	}
	return data, ids, lines.Err()
}

// What the service says it did is what a client sees, for every kind of harm it does to noops.
func TestTheServiceTellsTheTruth(t *testing.T) {
	const hold = 10*testInterval + testInterval/2
	for _, c := range []struct {
		act       string
		ids, data string
		lost      []uint64
	}{
		{"", "1 2 3 4 5 6", "000000", nil},
		{actLose, "1 2 4 5 6", "00000", []uint64{3}},
		{actRepeat, "1 2 3 3 4 5 6", "0000000", nil},
		{actHold, "1 2 4 3 5 6", "000000", nil},
		{actCorrupt, "1 2 3 4 5 6", "001000", nil},
		{actSkip, "1 2 3 4 5 6", "000000", []uint64{0}},
	} {
		for _, framing := range []string{"chunks", "split", "close"} {
			t.Run(c.act+"/"+framing, func(t *testing.T) {
				t.Parallel()
				s, url := testService(t, serviceSpec{IDs: idsNumbers, Ledger: true, format: format{Framing: framing, BOM: true}, Comments: true},
					strike{fault: fault{Action: c.act, From: 3, Count: 1}})
				data, ids, err := heard(t, url, "a", hold)
				require.NoError(t, err)
				require.True(t, strings.HasPrefix(strings.Join(ids, " "), c.ids), ids) // a busy machine asks for the end late
				require.True(t, strings.HasPrefix(strings.Join(data, ""), c.data), data)
				s.stop()
				var lost []uint64
				for _, n := range s.device("a").noops {
					if n.lost(time.Time{}) {
						lost = append(lost, n.number)
					}
				}
				require.Equal(t, c.lost, lost)
			})
		}
	}
}

func TestATruncatedStreamIsAnError(t *testing.T) {
	t.Parallel()
	_, url := testService(t, serviceSpec{IDs: idsNumbers, format: format{Framing: "chunks"}}, strike{fault: fault{Action: actTruncate, From: 3, Count: 1}})
	_, ids, err := heard(t, url, "a", time.Minute)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, "1 2", strings.Join(ids[:2], " "))
}

func TestTheLedgerCountsWhatWasLost(t *testing.T) {
	t.Parallel()
	_, url := testService(t, serviceSpec{IDs: idsNumbers, Ledger: true, format: format{Framing: "chunks"}}, strike{fault: fault{Action: actLose, From: 3, Count: 1}})
	_, ids, err := heard(t, url, "a", 4*testInterval+testInterval/2)
	require.NoError(t, err)
	last := ids[len(ids)-1]
	resp, err := http.Get(url + "/event/ledger?prefix=a")
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.JSONEq(t, `{"id":"a","first":1,"last":`+last+`,"sent":`+last+`,"slow":false}`, string(text))
}

// The campaign's service records as lost what its connection drops after the service has sent it.
func TestTruthIncludesWhatTheWireLoses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		does string
		err  bool
		lost int // the first
	}{{wireReset, true, 0}, {wireMidFrame, true, 3}, {wireVanish, true, 4}, {wirePause, false, 0}, {wireDribble, false, 0}, {wireMerge, false, 0}} {
		t.Run(c.does, func(t *testing.T) {
			t.Parallel()
			s, url := testService(t, serviceSpec{IDs: idsNumbers, format: format{Framing: "chunks"}}, strike{})
			spec := wireSpec{Does: c.does, Devices: []string{"a"}, Noop: 3, After: testInterval / 3}
			proxy, err := startWire(spec, strings.TrimPrefix(url, "http://"), s)
			require.NoError(t, err)
			t.Cleanup(proxy.Stop)
			_, ids, err := heard(t, proxy.URL, "a", 8*testInterval)
			require.Equal(t, c.err, err != nil, "%v %v", ids, err)
			s.stop()
			d, lost := s.device("a"), 0
			for _, n := range d.noops {
				if lost == 0 && n.lost(d.cutAt) {
					lost = n.slot
				}
			}
			require.Equal(t, c.lost, lost)
		})
	}
}

func TestAClientThatComesBackGetsWhatItMissed(t *testing.T) {
	t.Parallel()
	s, url := testService(t, serviceSpec{IDs: idsNumbers, format: format{Framing: "chunks"}, Resume: true}, strike{fault: fault{Action: actClose, From: 3, Count: 1}})
	_, ids, err := heard(t, url, "a", time.Minute)
	require.NoError(t, err)
	require.Equal(t, "1 2", strings.Join(ids, " "))
	time.Sleep(2 * testInterval)
	req, err := http.NewRequest(http.MethodGet, url+"/event/connect?id=a", nil)
	require.NoError(t, err)
	req.Header.Set("Last-Event-ID", "2")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	d, next := s.device("a"), 3
	lines := bufio.NewScanner(resp.Body)
	for live := false; !live && lines.Scan(); {
		if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			require.Equal(t, strconv.Itoa(next), id)
			s.mu.Lock()
			live = !d.noops[next-1].away && next > 3 // the third was due before the client went
			s.mu.Unlock()
			next++
		}
	}
	s.stop()
	for _, n := range d.noops {
		require.False(t, n.lost(time.Time{}), fmt.Sprint(n))
	}
}
