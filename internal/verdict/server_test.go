package verdict

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadServerLedger(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "backend-ledger.ndjson")
	l, err := ReadServerLedger(path)
	require.NoError(t, err)
	require.Nil(t, l, "without a file the ledger must be nil, not empty")
	require.NoError(t, os.WriteFile(path, []byte(`{"id":"d-1","first":1,"last":9,"sent":9,"slow":true}`+"\n\n"+`{"id":"d-2","unknown":true}`), 0o600))
	l, err = ReadServerLedger(path)
	require.NoError(t, err)
	require.Equal(t, ServerLedger{"d-1": {ID: "d-1", First: 1, Last: 9, Sent: 9}, "d-2": {ID: "d-2"}}, l)
	require.NoError(t, os.WriteFile(path, []byte("{}\n"), 0o600))
	_, err = ReadServerLedger(path)
	require.ErrorContains(t, err, path)
}

func TestServerLedgerRejectsInvalidLines(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"not JSON":               {"{\"id\":\"a\"}\nhello", "line 2: "},
		"cut short":              {`{"id":"a","fir`, "line 1: "},
		"no id":                  {`{"first":1}`, "line 1: the entry has no id"},
		"a negative count":       {`{"id":"a","sent":-1}`, "line 1: "},
		"a last number too high": {"\n{\"id\":\"a\",\"first\":1,\"last\":9223372036854776047,\"sent\":239}", "line 2: a has the number 9223372036854776047, above 1099511627776"},
		"a count too high":       {`{"id":"a","sent":1099511627777}`, "line 1: a has the number"},
		"last before first":      {`{"id":"a","first":9,"last":7}`, "line 1: a has the last number 7 before its first, 9"},
		"an id twice":            {"{\"id\":\"a\",\"last\":5}\n{\"id\":\"a\",\"last\":3}", "line 2: the id a occurs a second time"},
		"an endless line":        {strings.Repeat(" ", 1<<17), "token too long"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.ErrorContains(t, eachLine(strings.NewReader(c.text), ServerLedger{}.add), c.want)
		})
	}
}

// Whatever ledger a server reports, a run in which one noop is missing never passes, and Judge never panics.
func FuzzServerLedger(f *testing.F) {
	f.Add(`{"id":"d-0","first":1,"last":239,"sent":239}`)
	f.Add("{\"id\":\"d-0\",\"first\":18446744073709551615,\"last\":18446744073709551615,\"sent\":18446744073709551615}\n\n{\"id\":\"d-1\"}")
	f.Add("null\n")
	f.Fuzz(func(t *testing.T, text string) {
		l := ServerLedger{}
		if eachLine(strings.NewReader(text), l.add) != nil {
			return
		}
		for id, e := range l {
			require.NotEmpty(t, id)
			require.Equal(t, id, e.ID)
		}
		m, _ := cleanRun()
		r := &m.Connections.Edit(1).Record
		r.Received, r.Lost = noopsEach-1, 1
		v := requireOutcome(t, Fail, judgeSoak(m, l, Evidence{}))
		require.NotZero(t, v.Messages.Missed)
	})
}

func TestServerCountText(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]Server{
		"its ledger lists 1,000 as sent, equal to the number received":                                                                                                 {Sent: 1000, Agrees: true},
		"its ledger lists 400 as sent, all of which arrived; the ledger lacks the others":                                                                              {Sent: 400, Agrees: true},
		"its ledger lists 1,001 as sent; 1,000 were received; the ledger also counts events of POST /event/broadcast, corrupted messages and messages to lost streams": {Sent: 1001, Agrees: true},
		"its ledger lists none as sent, but 1,000 arrived":                                                                                                             {Agrees: true},
		"its ledger lists 700 as sent, equal to the number received at the clients of runners that ran from start to end":                                              {Sent: 700, Agrees: true, Uncompared: 300},
		"not compared: no runner ran from start to end":                                                                                                                {Agrees: true, Uncompared: 1000},
		"its ledger lists 1,001 as sent, but 1,000 arrived":                                                                                                            {Sent: 1001},
		"its ledger lists 1,001 as sent; it differs from the counts of the clients only where faults were found":                                                       {Sent: 1001, Confirms: true},
	} {
		require.Equal(t, want, s.Comparison(1000))
	}
}
