// Package format writes numbers, sizes and times as people read them, alike in all reports.
package format

import (
	"fmt"
	"strings"
	"time"
)

// Thousands is a whole number with a comma between each three digits.
func Thousands[N int | int64 | uint64](n N) string {
	s, sign := fmt.Sprint(n), ""
	if n < 0 {
		s, sign = s[1:], "−"
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// Count is a number of things, whose plural is regular.
func Count(n int, thing string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(thing, "s"):
		thing += "es"
	default:
		thing += "s"
	}
	return Thousands(n) + " " + thing
}

// Plural is a number of things for a sentence, in the form that goes with it: "1 connection was".
func Plural(n int, one, many string) string { return fmt.Sprintf("%d %s", n, Form(n, one, many)) }

// Form is the one of two forms that goes with a number.
func Form(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Bytes is a size in memory.
func Bytes(n uint64) string {
	const mib = 1 << 20
	if n >= 1024*mib {
		return fmt.Sprintf("%.2f GiB", float64(n)/(1024*mib))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/mib)
}

// Milliseconds is a duration that is given in them.
func Milliseconds(v float64) string {
	switch {
	case v >= 10_000:
		return fmt.Sprintf("%.1f s", v/1000)
	case v >= 100:
		return fmt.Sprintf("%.0f ms", v)
	}
	return fmt.Sprintf("%.1f ms", v)
}

// Time is an instant to the second, in UTC.
func Time(t time.Time) string { return t.UTC().Format(time.DateTime) + " UTC" }

// Moment is Time of seconds since 1970, "" where they are not known.
func Moment(unix float64) string {
	if unix <= 0 {
		return ""
	}
	return Time(time.UnixMicro(int64(unix * 1e6)))
}
