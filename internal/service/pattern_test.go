package service

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// requireAsRegexp compares a pattern with package regexp.
func requireAsRegexp(t *testing.T, expression, text string) {
	t.Helper()
	p, err := compile(expression)
	reference, otherErr := regexp.Compile(expression)
	if err != nil {
		return
	}
	require.NoError(t, otherErr)
	want := reference.FindStringSubmatchIndex(text)
	for range 2 { // with memory that was used before
		for _, find := range []func([]byte) ([]byte, bool){p.find, p.search} {
			got, ok := find([]byte(text))
			require.Equal(t, want != nil && want[2] >= 0, ok, "%s in %q", expression, text)
			if ok {
				require.Equal(t, text[want[2]:want[3]], string(got), "%s in %q", expression, text)
			}
		}
	}
}

var expressions = []string{
	`(\d+)`, `^(\d+)$`, `:(\d+)$`, `^\d+:(\d+)$`, `seq=(\d+)`, `.*-(\d+)`, `.*?-(\d+)`, `(a|ab)(?:c|bcd)`, `(a*)*`, `(a|b)*?c`, `(?i)SEQ=(\w+)`, `\b(\w+)\b$`, `(?m)^x(.*)$`, `(?s)a(.)b`,
	`a=([0-9a=]+);`, `^([a-z]*)[0-9]*$`, `n(:*)([0-9])?`, `([0-9]+)[0-9]`, `=([0-9]+)`, `^x*([a-c]+)y*$`, `é(a+)`, `(?i)a([b]+)`, `x([a-z]+?)`,
	`(x)?y`, `(|a)+`, `(é+)`, `[^0-9](\d{2,3})`, `()`, `(?:(a)|b)+`, `\A(\d*)\z`, `(.)`,
}

func TestPatternsFindWhatRegexpDoes(t *testing.T) {
	for _, expression := range expressions {
		for _, text := range []string{
			"", "17", "1732250000:17", "topic-1-17", "seq=17 seq=18", "x\nxy\nseq=5", "abcd", "aaab", "y", "xy", "ab", "éé é", "a\nb", "\xff17", "12 345", "Seq=a_1", "- -9", "ba",
		} {
			requireAsRegexp(t, expression, text)
		}
	}
	p, err := compile(`seq=(\d+)`)
	require.NoError(t, err)
	got, ok := p.find([]byte(strings.Repeat("seq ", 1<<14) + "seq=42"))
	require.True(t, ok)
	require.Equal(t, "42", string(got))
}

// The usual expressions take the short way, and others do not take it by mistake.
func TestTheShortWay(t *testing.T) {
	for expression, short := range map[string]bool{
		`sent=(\d+)`: true, `^\d+:(\d+)$`: true, `seq=([0-9]+)`: true, `^([a-f0-9-]+)/`: true, `^(\d*)$`: true,
		`(\d+)`: false, `(\d+)$`: false, `^(\d+)\d$`: false, `a(b|c+)`: false, `a([^b]+)`: false, `a(b+?)`: false, `(?i)a(b)`: false, `a(b*)c*b`: false, `\b(a)`: false,
	} {
		p, err := compile(expression)
		require.NoError(t, err)
		require.Equal(t, short, p.sequence != nil, expression)
	}
}

// A service cannot make it slow: what would take a square of the time goes the long way.
func TestTheShortWayGivesUp(t *testing.T) {
	p, err := compile(`a=([0-9a=]+);`)
	require.NoError(t, err)
	text := []byte(strings.Repeat("a=", 32<<10))
	_, _, sure := p.sequence.run(text)
	require.False(t, sure)
	_, ok := p.find(text)
	require.False(t, ok)
}

func FuzzPattern(f *testing.F) {
	for _, expression := range expressions {
		f.Add(expression, "topic-1:17 seq=18\nabcd é")
	}
	f.Fuzz(func(t *testing.T, expression, text string) {
		if len(expression) < 100 && len(text) < 1000 {
			requireAsRegexp(t, expression, text)
		}
	})
}
