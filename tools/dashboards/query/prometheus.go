package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Window is the time range of a dashboard and the distance of its points.
type Window struct {
	From, To time.Time
	Step     time.Duration
}

// scrape is the interval of our scrape configuration; Grafana takes it from the data source.
const scrape = 5 * time.Second

// Fill puts values in place of a query's variables, and Grafana's own by its rules:
// $__rate_interval is four scrapes, or more where the step is wider.
func (w Window) Fill(expr string, values map[string]string) string {
	all := map[string]string{
		"__range":         seconds(w.To.Sub(w.From)),
		"__interval":      seconds(w.Step),
		"__rate_interval": seconds(max(w.Step+scrape, 4*scrape)),
	}
	for name, value := range values {
		all[name] = value
	}
	return variable.ReplaceAllStringFunc(expr, func(use string) string {
		if value, ok := all[strings.Trim(use, "${}")]; ok {
			return value
		}
		return use
	})
}

var variable = regexp.MustCompile(`\$(\w+|\{\w+\})`)

func seconds(d time.Duration) string { return strconv.Itoa(int(math.Ceil(d.Seconds()))) + "s" }

// A Series is one line of a graph. Values that are no number are left out.
type Series struct {
	Labels map[string]string
	Points []Point
}

// A Point is a value at a time.
type Point struct {
	At    time.Time
	Value float64
}

// Last is the latest value.
func (s Series) Last() float64 { return s.Points[len(s.Points)-1].Value }

// Name fills the pattern of a legend, such as `{{reason}} of {{instance}}`.
func (s Series) Name(pattern string) string {
	return strings.TrimSpace(label.ReplaceAllStringFunc(pattern, func(use string) string {
		return s.Labels[strings.Trim(use, "{} ")]
	}))
}

var label = regexp.MustCompile(`\{\{\s*\w+\s*\}\}`)

// Prometheus is the address of a server, such as http://127.0.0.1:9090.
type Prometheus string

type response struct {
	Status, Error string
	Data          struct {
		Result []struct {
			Metric map[string]string
			Values [][2]any
		}
	}
}

// Range evaluates expr over a window. Series without a number in it are left out.
func (p Prometheus) Range(ctx context.Context, expr string, w Window) ([]Series, error) {
	form := url.Values{
		"query": {expr}, "step": {seconds(w.Step)},
		"start": {stamp(w.From)}, "end": {stamp(w.To)},
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, string(p)+"/api/v1/query_range", strings.NewReader(form.Encode()))
	if err != nil {
		return nil, fmt.Errorf("ask Prometheus: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask Prometheus: %w", err)
	}
	defer answer.Body.Close()
	var r response
	if err := json.NewDecoder(answer.Body).Decode(&r); err != nil {
		return nil, fmt.Errorf("read the answer of Prometheus (%s): %w", answer.Status, err)
	}
	if r.Status != "success" {
		return nil, errors.New(r.Error)
	}
	var out []Series
	for _, raw := range r.Data.Result {
		s := Series{Labels: raw.Metric}
		for _, v := range raw.Values {
			point, err := parse(v)
			if err != nil {
				return nil, err
			}
			if !math.IsNaN(point.Value) && !math.IsInf(point.Value, 0) {
				s.Points = append(s.Points, point)
			}
		}
		if len(s.Points) > 0 {
			out = append(out, s)
		}
	}
	return out, nil
}

func parse(v [2]any) (Point, error) {
	at, ok := v[0].(float64)
	text, isText := v[1].(string)
	if !ok || !isText {
		return Point{}, fmt.Errorf("a sample of Prometheus is %v", v)
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return Point{}, fmt.Errorf("a value of Prometheus: %w", err)
	}
	return Point{At: time.UnixMilli(int64(at * 1000)), Value: value}, nil
}

func stamp(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }

var (
	word   = regexp.MustCompile(`[A-Za-z_:][\w:]*`)
	metric = regexp.MustCompile(`^(?:k6|backend|process|go|node|nginx|container)_`)
)

// Metrics are the names of the metrics in a query, without those that recording rules make.
func Metrics(expr string) []string {
	names := word.FindAllString(inBrackets.ReplaceAllString(expr, ""), -1)
	names = slices.DeleteFunc(names, func(name string) bool { return !metric.MatchString(name) })
	slices.Sort(names)
	return slices.Compact(names)
}

// inBrackets is what may hold words that are no metric: matchers.
var inBrackets = regexp.MustCompile(`\{[^}]*\}`)
