package draw

import (
	"fmt"
	"math"
	"strconv"

	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// Format writes a value in a unit of Grafana, about as Grafana does.
func Format(v float64, unit string) string {
	switch unit {
	case units.PercentUnit:
		return number(100*v) + " %"
	case units.Seconds:
		return duration(v)
	case units.BytesIEC:
		return scaled(v, 1024, []string{"B", "KiB", "MiB", "GiB", "TiB"})
	case units.BytesSI:
		return scaled(v, 1000, []string{"B", "kB", "MB", "GB", "TB"})
	case units.BytesPerSecondSI:
		return scaled(v, 1000, []string{"B/s", "kB/s", "MB/s", "GB/s", "TB/s"})
	case units.CountsPerSecond, units.EventsPerSecond, units.OpsPerSecond, units.RequestsPerSecond, units.PacketsPerSecond:
		return scaled(v, 1000, []string{"/s", "k/s", "M/s"})
	}
	return scaled(v, 1000, []string{"", "k", "M", "G", "T"})
}

func scaled(v, step float64, names []string) string {
	i := 0
	for ; math.Abs(v) >= step && i < len(names)-1; i++ {
		v /= step
	}
	if names[i] == "" {
		return number(v)
	}
	return number(v) + " " + names[i]
}

func duration(v float64) string {
	switch a := math.Abs(v); {
	case a == 0:
		return "0 s"
	case a < 1e-3:
		return number(v*1e6) + " µs"
	case a < 1:
		return number(v*1e3) + " ms"
	case a < 120:
		return number(v) + " s"
	case a < 7200:
		return number(v/60) + " min"
	}
	return number(v/3600) + " h"
}

// number has three significant digits.
func number(v float64) string {
	if a := math.Abs(v); a >= 100 || a == math.Trunc(a) {
		return fmt.Sprintf("%.0f", v)
	}
	return strconv.FormatFloat(mustParse(fmt.Sprintf("%.3g", v)), 'f', -1, 64)
}

func mustParse(s string) float64 {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		panic(err) // it was written by fmt
	}
	return v
}
