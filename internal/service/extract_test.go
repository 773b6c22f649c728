package service

import (
	"math/big"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNumbers(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "17": 17, "017": 17, "9223372036854775807": 9223372036854775807, "1.7e1": 17, "17.000": 17, "1700e-2": 17, "1E3": 1000, "-0": 0, "1e18": 1e18,
	} {
		got, ok := parseSeq([]byte(text))
		require.True(t, ok, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "-", "-1", "1.5", "x", "1x", " 1", "1e", "1e+", "9223372036854775808", "18446744073709551616", "1e19", "1.", ".5", "17.0000000000000000000000001", "0x10", "1e99999999999999999999", "--1", "1-1", "1.2.3"} {
		_, ok := parseSeq([]byte(text))
		require.False(t, ok, text)
	}
}

func TestTimes(t *testing.T) {
	at := time.Date(2024, 11, 22, 7, 6, 40, 123456000, time.UTC)
	for text, want := range map[string]time.Time{
		"1732259200": at.Truncate(time.Second), "1732259200.123456": at, "1732259200.1234567899999": at, "1732259200123": at.Truncate(time.Millisecond), "1732259200123.456": at,
		"1732259200123456": at, "1732259200123456789": at, "1.732259200123456e9": at, "1.732259200123456e+15": at,
		"2024-11-22T07:06:40Z": at.Truncate(time.Second), "2024-11-22T07:06:40.123456Z": at, "2024-11-22 07:06:40.123456Z": at, "2024-11-22t08:36:40.123456789+01:30": at, "2024-11-21T23:06:40.123456-08:00": at,
	} {
		got, ok := parseTime([]byte(text))
		require.True(t, ok, text)
		require.Equal(t, want.UnixMicro(), got, text)
	}
	for _, text := range []string{"", "0", "17", "-1732259200", "x", "2024-11-22", "2024-11-22T07:06:40", "2024-13-22T07:06:40Z", "2024-11-22T07:06:40+0100", "2024-11-22T07:06:4xZ", "1e30", "20a4-11-22T07:06:40Z"} {
		_, ok := parseTime([]byte(text))
		require.False(t, ok, text)
	}
	micros := []byte("1732259200123456")
	require.Zero(t, testing.AllocsPerRun(100, func() { parseTime(micros) }), "parseTime must not allocate, because it is called once per message")
}

func FuzzNumber(f *testing.F) {
	for _, text := range []string{"17", "-1", "1.5e3", "9223372036854775807", "1700e-2", "2024-11-22T07:06:40.5+01:00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parseTime([]byte(text))
		got, ok := parseSeq([]byte(text))
		if len(text) > 40 || strings.ContainsAny(text, "/_xXoObBpPiInN+") {
			return
		}
		if e := strings.IndexAny(text, "eE"); e >= 0 && len(text)-e > 4 {
			return
		}
		exact, valid := new(big.Rat).SetString(text)
		if valid {
			valid = !strings.HasSuffix(text, ".") && !strings.HasPrefix(text, ".") && !strings.HasPrefix(text, "-.") && !strings.Contains(text, ".e") && !strings.Contains(text, ".E")
		}
		whole := valid && exact.IsInt() && exact.Num().IsInt64() && exact.Sign() >= 0
		require.Equal(t, whole, ok, "%q", text)
		if ok {
			require.Equal(t, exact.Num().Int64(), got, "%q", text)
		}
	})
}

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
