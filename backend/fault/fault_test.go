package fault

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	t.Parallel()
	cases := map[string][]Fault{
		"":                       nil,
		"drop":                   {{Kind: Drop, Noop: 3, Count: 1}},
		"drop:id=a-1,noop=7":     {{Kind: Drop, ID: "a-1", Noop: 7, Count: 1}},
		"delay=2s:count=4":       {{Kind: Delay, Wait: 2 * time.Second, Noop: 3, Count: 4}},
		"slow-headers":           {{Kind: SlowHeaders, Wait: 30 * time.Second, Count: 1}},
		"slow-headers=1m:id=b":   {{Kind: SlowHeaders, Wait: time.Minute, ID: "b", Count: 1}},
		"refuse:count=3 ; reset": {{Kind: Refuse, Count: 3}, {Kind: Reset, Noop: 3, Count: 1}},
	}
	for text, want := range cases {
		got, err := Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

func TestParseRejectsInvalidFaults(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		"explode":                   "unknown kind",
		"drop=1":                    "accepts no value",
		"delay":                     "needs a time",
		"delay=":                    "the time must be over 0",
		"delay=-1s":                 "the time must be over 0",
		"delay=5":                   "the time must be over 0",
		"drop:":                     "unknown key",
		"drop:noop=0":               "noop must be",
		"drop:noop=x":               "noop must be",
		"drop:count=0":              "count must be",
		"drop:count=10001":          "count must be",
		"drop:id=":                  "id must have",
		"drop:id=a/b":               "id must have",
		"drop:noop=1,noop=2":        "twice",
		"refuse:noop=1":             "remove the key noop",
		"drop;;drop":                "unknown kind",
		strings.Repeat("drop;", 65): "more than 64",
	}
	for text, want := range cases {
		_, err := Parse(text)
		require.ErrorContains(t, err, want, text)
	}
}

func TestSetAppliesFaults(t *testing.T) {
	t.Parallel()
	var s Set
	require.True(t, s.Empty())
	faults, err := Parse("drop:count=2;refuse;corrupt:id=b,noop=5")
	require.NoError(t, err)
	s.Add(faults...)
	require.Nil(t, s.AtNoop("a", 2, 1))
	require.Equal(t, Drop, s.AtNoop("a", 3, 2).Kind)
	require.Nil(t, s.AtNoop("b", 4, 3), "a fault that counts noops must affect one id only")
	require.Equal(t, Drop, s.AtNoop("a", 4, 4).Kind)
	require.Nil(t, s.AtNoop("a", 5, 5))
	require.Equal(t, Corrupt, s.AtNoop("b", 6, 6).Kind)
	require.Equal(t, Refuse, s.AtConnect("c", 7).Kind)
	require.Nil(t, s.AtConnect("c", 8))
	require.True(t, s.Empty())
	require.Equal(t, []Effect{{"a", 3, 2}, {"a", 4, 4}}, s.Status()[0].Effects)
}

func TestHelpListsTheFaultsThatAffectAnyID(t *testing.T) {
	_, anyID, found := strings.Cut(Help, "any id for")
	require.True(t, found)
	anyID, _, _ = strings.Cut(anyID, "noop=N")
	for kind := range kinds {
		var s Set
		s.Add(Fault{Kind: kind, Count: 2})
		at := func(id string) *Fault {
			if kinds[kind].atConnect {
				return s.AtConnect(id, 0)
			}
			return s.AtNoop(id, 1, 0)
		}
		require.NotNil(t, at("a"), kind)
		inHelp := kinds[kind].atConnect || strings.Contains(anyID, string(kind))
		require.Equal(t, at("b") != nil, inHelp, kind)
	}
}

// An accepted fault is within the limits, and its text parses to the same fault.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"drop", "delay=2s:id=a,noop=4,count=2", "slow-headers;refuse:count=3", "a:b=c", ";", "drop:id=%00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		faults, err := Parse(text)
		if err != nil {
			if faults != nil || strings.ContainsAny(err.Error(), "\n\r") {
				t.Fatalf("Parse(%q): got %v and error %q, want no faults and a one-line error", text, faults, err)
			}
			return
		}
		for _, fault := range faults {
			second, err := Parse(fault.String())
			if err != nil || len(second) != 1 || second[0] != fault {
				t.Fatalf("Parse(%q): got %v and error %v, want only the fault of %q", fault, second, err, text)
			}
			if fault.Count < 1 || fault.Count > maxCount || !fault.AtConnect() && fault.Noop == 0 {
				t.Fatalf("Parse(%q): got %+v, want a count from 1 to %d, and a noop number unless at a connect", text, fault, maxCount)
			}
		}
	})
}
