package service

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// requireSameAsRegexp compares pattern.find with package regexp.
func requireSameAsRegexp(t *testing.T, expression, text string) {
	t.Helper()
	p, err := compilePattern(expression)
	reference, otherErr := regexp.Compile(expression)
	if err != nil {
		return
	}
	require.NoError(t, otherErr)
	want := reference.FindStringSubmatchIndex(text)
	got, ok := p.find([]byte(text))
	require.Equal(t, want != nil && want[2] >= 0, ok, "%s in %q", expression, text)
	if ok {
		require.Equal(t, text[want[2]:want[3]], string(got), "%s in %q", expression, text)
	}
}

var expressions = []string{
	`(\d+)`, `^(\d+)$`, `:(\d+)$`, `^\d+:(\d+)$`, `seq=(\d+)`, `.*-(\d+)`, `.*?-(\d+)`, `(a|ab)(?:c|bcd)`, `(a*)*`, `(a|b)*?c`, `(?i)SEQ=(\w+)`, `\b(\w+)\b$`, `(?m)^x(.*)$`, `(?s)a(.)b`,
	`a=([0-9a=]+);`, `^([a-z]*)[0-9]*$`, `^ *sent=([0-9]+) *$`, `n(:*)([0-9])?`, `([0-9]+)[0-9]`, `=([0-9]+)`, `^x*([a-c]+)y*$`, `é(a+)`, `(?i)a([b]+)`, `x([a-z]+?)`,
	`(x)?y`, `(|a)+`, `(é+)`, `[^0-9](\d{2,3})`, `()`, `(?:(a)|b)+`, `\A(\d*)\z`, `(.)`,
}

func TestPatternsMatchLikeRegexp(t *testing.T) {
	for _, expression := range expressions {
		for _, text := range []string{
			"", "17", "1732250000:17", "topic-1-17", "seq=17 seq=18", "x\nxy\nseq=5", "abcd", "aaab", "y", "xy", "ab", "éé é", "a\nb", "\xff17", "12 345", "Seq=a_1", "- -9", "ba", "sent=5", "  sent=17 ", "sent=", "sent=1x", "sent=1 2", "xsent=1", "sent=1\n",
		} {
			requireSameAsRegexp(t, expression, text)
		}
	}
	p, err := compilePattern(`seq=(\d+)`)
	require.NoError(t, err)
	got, ok := p.find([]byte(strings.Repeat("seq ", 1<<14) + "seq=42"))
	require.True(t, ok)
	require.Equal(t, "42", string(got))
}

func FuzzPattern(f *testing.F) {
	for _, expression := range expressions {
		f.Add(expression, "topic-1:17 seq=18\nabcd é")
	}
	f.Fuzz(func(t *testing.T, expression, text string) {
		if len(expression) < 100 && len(text) < 1000 {
			requireSameAsRegexp(t, expression, text)
		}
	})
}
