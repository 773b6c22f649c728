// Package format formats numbers, sizes and times for display, the same way in all reports.
package format

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"
)

type number interface{ int | int64 | uint64 }

// Thousands formats an integer with commas between groups of three digits.
func Thousands[N number](n N) string {
	s, sign := fmt.Sprint(n), ""
	if n < 0 {
		s, sign = s[1:], "−"
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// Count formats a number with a noun whose plural is regular: "1,200 streams".
func Count[N number](n N, noun string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(noun, "s"):
		noun += "es"
	default:
		noun += "s"
	}
	return Thousands(n) + " " + noun
}

// Plural formats a number, without commas, with the matching form of a phrase: "1 stream was", "2 streams were".
func Plural[N number](n N, singular, plural string) string {
	return fmt.Sprintf("%d %s", n, Form(n, singular, plural))
}

// Form returns singular if n is 1, and otherwise plural.
func Form[N number](n N, singular, plural string) string {
	if n == 1 {
		return singular
	}
	return plural
}

// Duration formats a duration: below two minutes in milliseconds or seconds with at most four digits, otherwise in
// hours, minutes and seconds.
func Duration(d time.Duration) string {
	if d >= 2*time.Minute {
		return longDuration(d)
	}
	for _, step := range []struct{ from, to time.Duration }{
		{10 * time.Second, 100 * time.Millisecond}, {time.Second, 10 * time.Millisecond}, {100 * time.Millisecond, time.Millisecond}, {0, 100 * time.Microsecond},
	} {
		if d.Abs() >= step.from {
			d = d.Round(step.to)
			break
		}
	}
	if d.Abs() >= time.Second {
		return fmt.Sprint(float64(d)/float64(time.Second)) + " s" // d.Seconds() may differ in the last digit
	}
	return fmt.Sprint(float64(d)/float64(time.Millisecond)) + " ms"
}

func longDuration(d time.Duration) string {
	var parts []string
	remaining := d.Round(time.Second)
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{{time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}} {
		if n := remaining / unit.length; n > 0 {
			parts = append(parts, Thousands(int64(n))+" "+unit.name)
		}
		remaining %= unit.length
	}
	return strings.Join(parts, " ")
}

// InMilliseconds returns a duration as a number of milliseconds, to the microsecond.
func InMilliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Milliseconds formats a number of milliseconds as Duration does. It returns "–" for NaN.
func Milliseconds(v float64) string {
	if math.IsNaN(v) {
		return unknown
	}
	return Duration(time.Duration(v * float64(time.Millisecond)))
}

// Time formats a time to the second, in UTC.
func Time(t time.Time) string { return t.UTC().Format(time.DateTime) + " UTC" }

// TimeOfDay formats the time of day to the millisecond, in UTC.
func TimeOfDay(t time.Time) string { return t.UTC().Format("15:04:05.000") + " UTC" }

// Unix returns a time as seconds since 1970, to the microsecond.
func Unix(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

// UnixTime formats seconds since 1970 as Time does. It returns "" for 0.
func UnixTime(unix float64) string {
	if unix <= 0 {
		return ""
	}
	return Time(time.UnixMicro(int64(unix * 1e6)))
}

// Shorten returns the start of text as one line of printable characters, at most limit bytes long. Shortened text
// ends with "…" (3 bytes), so limit must be at least 3.
func Shorten(text string, limit int) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " ")
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len("…")], "") + "…"
}
