package format

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

const unknown = "–"

// MiB formats a number of MiB as KiB, MiB or GiB. It returns "–" for NaN.
func MiB(v float64) string {
	switch size := math.Abs(v); {
	case math.IsNaN(v):
		return unknown
	case size < 0.1/1024/2:
		return "0 MiB"
	case size >= 1024:
		return withSign("%.2f GiB", v/1024)
	case size < 1:
		return withSign("%.1f KiB", v*1024)
	}
	return withSign("%.1f MiB", v)
}

// Bytes formats a number of bytes as KiB, MiB or GiB.
func Bytes[N number](n N) string { return MiB(float64(n) / (1 << 20)) }

// tinyPercent is the text of a percentage that is over 0 and too small for two decimals.
const tinyPercent = "< 0.01 %"

// Percent formats a percentage, with more decimals for smaller values. It returns "–" for NaN.
func Percent(v float64) string {
	switch size := math.Abs(v); {
	case math.IsNaN(v):
		return unknown
	case v < 0 && size < .01:
		return "> −0.01 %"
	case v != 0 && size < .01:
		return tinyPercent
	case v != 0 && size < .1:
		return withSign("%.2f %%", v)
	case size >= 100:
		return withSign("%.0f %%", v)
	}
	return withSign("%.1f %%", v)
}

// FixedPercent formats a percentage with a fixed number of decimals, for values that are compared with a limit.
func FixedPercent(v float64, decimals int) string {
	return strconv.FormatFloat(v, 'f', decimals, 64) + " %"
}

// Share formats a part of a total as a percentage. It returns "–" if the total is 0.
func Share(part, total float64) string {
	if total == 0 {
		return unknown
	}
	return Percent(100 * part / total)
}

// Quantity formats a value with its unit. MiB, percentages and milliseconds have the formats of MiB, Percent and
// Milliseconds. It returns "–" for NaN.
func Quantity(v float64, unit string) string {
	switch {
	case math.IsNaN(v):
		return unknown
	case unit == "MiB":
		return MiB(v)
	case unit == "%", unit == "% of requests":
		return Percent(v)
	case v < 0:
		return signed("−", -v, unit)
	case unit == "ms":
		return Milliseconds(v)
	}
	text := strconv.FormatFloat(v, 'g', 4, 64)
	if v == math.Trunc(v) && v < 1e15 || v >= 1000 {
		text = Thousands(int64(v + .5))
	}
	if unit == "" {
		return text
	}
	return text + " " + unit
}

// Change formats a quantity with its sign.
func Change(v float64, unit string) string {
	if v > 0 {
		return signed("+", v, unit)
	}
	return Quantity(v, unit)
}

// signed formats a positive quantity with a sign. It omits the sign of a text that shows 0 or tinyPercent.
func signed(sign string, v float64, unit string) string {
	text := Quantity(v, unit)
	if text == Quantity(0, unit) || text == tinyPercent {
		return text
	}
	return sign + text
}

// withSign formats a value. A negative value has a minus sign (U+2212) in place of the shorter hyphen.
func withSign(format string, v float64) string {
	if v < 0 {
		return "−" + fmt.Sprintf(format, -v)
	}
	return fmt.Sprintf(format, v)
}

// Clock formats seconds since 1970 as a time of day in UTC. It returns "–" for 0, an unknown time.
func Clock(unix float64) string {
	if unix <= 0 {
		return unknown
	}
	return time.UnixMicro(int64(unix * 1e6)).UTC().Format(time.TimeOnly)
}
