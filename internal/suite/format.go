package suite

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// count formats a number: with one decimal if below 10 and not whole, otherwise rounded, with thousands separators.
func count(v float64) string {
	if v < 10 && v != float64(int64(v)) {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return format.Thousands(int64(v + .5))
}

func ms(v float64) string {
	if v >= 1000 {
		return format.Milliseconds(v)
	}
	return figure(v) + " ms"
}

// figure formats a number: without decimals from 100, with one decimal from 10, and with two decimals below.
func figure(v float64) string {
	switch {
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// ratio formats n, and its percentage of total. It returns "0" if total is 0.
func ratio(n, total int64) string {
	if total == 0 {
		return "0"
	}
	return fmt.Sprintf("%s (%s)", format.Thousands(n), percentOf(share(n, total)))
}

// percentOf formats a share, 0 to 1, as a percentage with two decimals.
func percentOf(share float64) string { return format.FixedPercent(100*share, 2) }

// distinctPercent formats a share like percentOf, with at least the given number of decimals. If the share differs from
// the limit, distinctPercent adds decimals, up to nine, until both have different texts.
func distinctPercent(limit, share float64, decimals int) string {
	text := format.FixedPercent(100*share, decimals)
	if share != limit && decimals < 9 && text == format.FixedPercent(100*limit, decimals) {
		return distinctPercent(limit, share, decimals+1)
	}
	return text
}

// percent formats a share, 0 to 1, as a percentage without decimals.
func percent(share float64) string { return format.FixedPercent(100*share, 0) }

// change formats the relative change of a figure as a percentage. It returns "–" if the first value is 0.
func change(from, to float64) string {
	if from == 0 {
		return "–"
	}
	return fmt.Sprintf("%+.1f %%", 100*(to-from)/from)
}

// quantiles formats quantiles, 0 to 1, of a histogram in milliseconds, without a unit. If h is nil or empty, each one
// is "–".
func quantiles(h *shard.Histogram, at ...float64) (out []string) {
	for _, q := range at {
		if h == nil || h.Count() == 0 {
			out = append(out, "–")
		} else {
			out = append(out, figure(quantile(h, q)))
		}
	}
	return out
}

func p95Cell(q *Requests) string { return quantiles(q.OK, .95)[0] }

// netErrors describes the error codes of k6: https://grafana.com/docs/k6/latest/javascript-api/error-codes/
var netErrors = map[string]string{
	"1000": "no valid response", "1010": "network error", "1020": "not a URL", "1050": "timeout", "1100": "name lookup failed", "1101": "no such host",
	"1200": "TCP error", "1201": "broken pipe", "1202": "network error", "1210": "connect failed", "1211": "connect timed out", "1212": "connection refused",
	"1213": "connect failed: no route, or another system error", "1220": "connection reset", "1300": "TLS error", "1301": "no TLS",
	"1310": "certificate of an unknown authority", "1311": "certificate of another host", "1701": "content cannot be decompressed",
}

func codeText(code string) string {
	switch code {
	case shard.CodeWrongContent:
		return "wrong response"
	case shard.CodeTruncated:
		return "truncated response"
	}
	if reason := shard.LackReasons[code]; reason != "" {
		return reason
	}
	if status, ok := strings.CutPrefix(code, shard.CodeStatus); ok {
		return "status " + status
	}
	number, ok := strings.CutPrefix(code, shard.CodeNet)
	if !ok {
		return "unknown"
	}
	if text, ok := netErrors[number]; ok {
		return text
	}
	if n, err := strconv.Atoi(number); err == nil && n >= 1600 && n < 1700 {
		return "HTTP/2 error"
	}
	return "k6's error " + number
}

// text formats a value as in all reports. It formats a float64 with the function count.
func text(v any) string {
	switch v := v.(type) {
	case int:
		return format.Thousands(v)
	case int64:
		return format.Thousands(v)
	case uint64:
		return format.Thousands(v)
	case float64:
		return count(v)
	case time.Duration:
		return format.Duration(v)
	}
	return fmt.Sprint(v)
}

// sentence is fmt.Sprintf with values formatted by text.
func sentence(layout string, values ...any) string {
	args := make([]any, len(values))
	for i, v := range values {
		args[i] = text(v)
	}
	return fmt.Sprintf(layout, args...)
}

// newTable returns an empty table; columns are separated by |.
func newTable(title, note, columns string) verdict.Table {
	return verdict.Table{Title: title, Note: note, Columns: strings.Split(columns, "|")}
}

func row(cells ...any) []string {
	out := make([]string, len(cells))
	for i, v := range cells {
		out[i] = text(v)
	}
	return out
}
