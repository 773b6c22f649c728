package service

import (
	"math"
	"time"
)

// decimal is mantissa × 10^exponent.
type decimal struct {
	mantissa uint64
	exponent int
	negative bool
	cut      bool // digits of the fraction were left out, and not only zeros
}

// parseDecimal reads all of text as a decimal number, such as 17, -1.5 or 1.7e9. Digits of a fraction that
// a mantissa of 18 digits cannot hold are left out.
func parseDecimal(text []byte) (d decimal, ok bool) {
	i := 0
	if i < len(text) && text[i] == '-' {
		d.negative = true
		i++
	}
	digits, point := 0, false
	for ; i < len(text); i++ {
		c := text[i]
		if c == '.' && !point && digits > 0 {
			point = true
			continue
		}
		if c < '0' || c > '9' {
			break
		}
		digits++
		switch {
		case d.mantissa < 1e17:
			d.mantissa = d.mantissa*10 + uint64(c-'0')
			if point {
				d.exponent--
			}
		case !point && (d.mantissa < math.MaxInt64/10 || d.mantissa == math.MaxInt64/10 && c <= '7'):
			d.mantissa = d.mantissa*10 + uint64(c-'0')
		case !point:
			return d, false
		default:
			d.cut = d.cut || c != '0'
		}
	}
	if digits == 0 || text[i-1] == '.' {
		return d, false
	}
	if i < len(text) && text[i]|0x20 == 'e' {
		power, rest, valid := parsePower(text[i+1:])
		if !valid || rest > 0 {
			return d, false
		}
		d.exponent += power
		return d, true
	}
	return d, i == len(text)
}

// parsePower reads a power of ten; rest is what is left of text.
func parsePower(text []byte) (power, rest int, ok bool) {
	sign, i := 1, 0
	if len(text) > 0 && (text[0] == '+' || text[0] == '-') {
		if i = 1; text[0] == '-' {
			sign = -1
		}
	}
	for ; i < len(text) && '0' <= text[i] && text[i] <= '9'; i++ {
		power = min(power*10+int(text[i]-'0'), 1000)
		ok = true
	}
	return sign * power, len(text) - i, ok
}

// scaled is mantissa × 10^exponent without its fraction; exact says that there was none.
func (d decimal) scaled() (n int64, exact, ok bool) {
	exact = !d.cut
	m := d.mantissa
	for e := d.exponent; e < 0 && m > 0; e++ {
		exact = exact && m%10 == 0
		m /= 10
	}
	for e := d.exponent; e > 0 && m > 0; e-- {
		if m > math.MaxInt64/10 {
			return 0, false, false
		}
		m *= 10
	}
	return int64(m), exact, true //nolint:gosec // G115: at most math.MaxInt64, as above
}

// parseSeq reads a number of a message: whole, from 0 on.
func parseSeq(text []byte) (int64, bool) {
	d, ok := parseDecimal(text)
	if !ok {
		return 0, false
	}
	n, exact, ok := d.scaled()
	return n, ok && exact && (!d.negative || n == 0)
}

// parseTime reads a time as microseconds since 1970: a number of seconds, milliseconds, microseconds or
// nanoseconds since then, told apart by their size (right from 1973 to 5138), or a date of RFC 3339.
func parseTime(text []byte) (int64, bool) {
	if len(text) > 10 && text[4] == '-' && text[7] == '-' {
		return parseDate(text)
	}
	d, ok := parseDecimal(text)
	if !ok || d.negative {
		return 0, false
	}
	n, _, ok := d.scaled()
	if !ok {
		return 0, false
	}
	switch {
	case n < 1e8:
		return 0, false
	case n < 1e11:
		d.exponent += 6
	case n < 1e14:
		d.exponent += 3
	case n >= 1e17:
		d.exponent -= 3
	}
	n, _, ok = d.scaled()
	return n, ok
}

// parseDate reads 2006-01-02T15:04:05.999Z, with an offset in place of Z and a space in place of T.
func parseDate(text []byte) (int64, bool) {
	if len(text) < 20 || text[10]|0x20 != 't' && text[10] != ' ' || text[13] != ':' || text[16] != ':' {
		return 0, false
	}
	var part [6]int
	for i, at := range [6][2]int{{0, 4}, {5, 7}, {8, 10}, {11, 13}, {14, 16}, {17, 19}} {
		if !digitsOf(text[at[0]:at[1]], &part[i]) {
			return 0, false
		}
	}
	if part[1] < 1 || part[1] > 12 || part[2] < 1 || part[2] > 31 || part[3] > 23 || part[4] > 59 || part[5] > 60 {
		return 0, false
	}
	rest, fraction := text[19:], 0
	if rest[0] == '.' {
		unit := 100_000
		i := 1
		for ; i < len(rest) && '0' <= rest[i] && rest[i] <= '9'; i++ {
			fraction += int(rest[i]-'0') * unit
			unit /= 10
		}
		rest = rest[i:]
	}
	offset, ok := parseOffset(rest)
	t := time.Date(part[0], time.Month(part[1]), part[2], part[3], part[4], part[5], 0, time.UTC)
	return t.UnixMicro() - int64(offset)*1e6 + int64(fraction), ok
}

// parseOffset reads Z or ±hh:mm, in seconds.
func parseOffset(text []byte) (int, bool) {
	if len(text) == 1 && text[0]|0x20 == 'z' {
		return 0, true
	}
	var hours, minutes int
	if len(text) != 6 || text[3] != ':' || text[0] != '+' && text[0] != '-' || !digitsOf(text[1:3], &hours) || !digitsOf(text[4:6], &minutes) {
		return 0, false
	}
	if text[0] == '-' {
		hours, minutes = -hours, -minutes
	}
	return hours*3600 + minutes*60, true
}

func digitsOf(text []byte, n *int) bool {
	for _, c := range text {
		if c < '0' || c > '9' {
			return false
		}
		*n = *n*10 + int(c-'0')
	}
	return true
}

// parseID reads a number from 1 on that consists of digits only.
func parseID(text []byte) (n int64, ok bool) {
	for _, c := range text {
		if c < '0' || c > '9' || n > (math.MaxInt64-9)/10 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, n > 0
}
