package html

import (
	"fmt"
	"math"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
)

// Numbers of a page, as a person reads them.

func duration(ms float64) string {
	if math.IsNaN(ms) {
		return "–"
	}
	return format.Milliseconds(ms)
}

func memory(mib float64) string {
	switch {
	case math.IsNaN(mib):
		return "–"
	case math.Abs(mib) < 0.1/1024/2:
		return "0 MiB"
	case math.Abs(mib) >= 1024:
		return signed("%.2f GiB", mib/1024)
	case math.Abs(mib) < 1:
		return signed("%.1f KiB", mib*1024)
	}
	return signed("%.1f MiB", mib)
}

func share(part, whole float64) string {
	if whole == 0 {
		return "–"
	}
	return percent(100 * part / whole)
}

func percent(v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case v != 0 && math.Abs(v) < .1:
		return signed("%.2f %%", v)
	case math.Abs(v) >= 100:
		return signed("%.0f %%", v)
	}
	return signed("%.1f %%", v)
}

// signed writes a minus as long as a plus.
func signed(format string, v float64) string {
	if v < 0 {
		return "−" + fmt.Sprintf(format, -v)
	}
	return fmt.Sprintf(format, v)
}

// plus is signed with a plus before what grows.
func plus(text string, v float64) string {
	if v > 0 {
		return "+" + text
	}
	return text
}

func clock(unix float64) string {
	if unix <= 0 {
		return "–"
	}
	return time.UnixMicro(int64(unix * 1e6)).UTC().Format("15:04:05")
}
