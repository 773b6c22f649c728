package service

import (
	"math"
	"math/big"
	"regexp"
	"strings"
	"time"
)

// decimal matches a JSON number, even with leading zeros. It limits the digits and the exponent, because expanding
// 1e999999999 would exhaust the memory.
var decimal = regexp.MustCompile(`^-?[0-9]{1,40}(?:\.[0-9]{1,40})?(?:[eE][+-]?[0-9]{1,3})?$`)

func parseDecimal(text []byte) (*big.Rat, bool) {
	if !decimal.Match(text) {
		return nil, false
	}
	return new(big.Rat).SetString(string(text))
}

// parseSeq parses the number of a message: an integer of at least 0.
func parseSeq(text []byte) (int64, bool) {
	if n, ok := parseDigits(text); ok {
		return n, true
	}
	d, ok := parseDecimal(text)
	if !ok || !d.IsInt() || !d.Num().IsInt64() || d.Sign() < 0 {
		return 0, false
	}
	return d.Num().Int64(), true
}

// parseTime returns a time in microseconds since 1970. The text is a date of RFC 3339, or a number of seconds,
// milliseconds, microseconds or nanoseconds since 1970. The size of the number determines its unit, for times from 1973
// to 5138.
func parseTime(text []byte) (int64, bool) {
	if len(text) > 10 && text[4] == '-' && text[7] == '-' {
		return parseDate(string(text))
	}
	if n, ok := parseDigits(text); ok { // most services send digits, which need no allocation
		micros, units := timeUnit(n)
		return n * micros / units, micros > 0
	}
	d, ok := parseDecimal(text)
	if !ok || d.Sign() < 0 {
		return 0, false
	}
	floor := new(big.Int).Quo(d.Num(), d.Denom())
	if !floor.IsInt64() {
		return 0, false
	}
	micros, units := timeUnit(floor.Int64())
	d.Mul(d, big.NewRat(micros, units))
	return new(big.Int).Quo(d.Num(), d.Denom()).Int64(), micros > 0
}

// timeUnit returns the unit of a number as a fraction: one unit is micros/units microseconds. micros is 0 if the number
// is too small for a time.
func timeUnit(n int64) (micros, units int64) {
	switch {
	case n < 1e8:
		return 0, 1
	case n < 1e11:
		return 1e6, 1
	case n < 1e14:
		return 1e3, 1
	case n < 1e17:
		return 1, 1
	}
	return 1, 1e3
}

// parseDate parses a date of RFC 3339. A space may replace the T.
func parseDate(text string) (int64, bool) {
	t, err := time.Parse(time.RFC3339, strings.Replace(strings.ToUpper(text), " ", "T", 1))
	return t.UnixMicro(), err == nil
}

func parseID(text []byte) (int64, bool) {
	n, ok := parseDigits(text)
	return n, ok && n > 0
}

// parseDigits parses an integer of decimal digits only. It must not allocate, because it is called for each message.
func parseDigits(text []byte) (n int64, ok bool) {
	for _, c := range text {
		if c < '0' || c > '9' || n > (math.MaxInt64-int64(c-'0'))/10 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, len(text) > 0
}
