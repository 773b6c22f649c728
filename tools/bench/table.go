package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/tools/page"
)

// A measurement is one row of the table.
type measurement struct {
	Section    string  `json:"section"`
	Name       string  `json:"name"`
	MeasuredAt string  `json:"measured"`
	Commit     string  `json:"commit,omitempty"`
	Machine    string  `json:"machine"`
	Unit       string  `json:"unit"`
	Value      float64 `json:"value"` // median of the repetitions
	Low        float64 `json:"low"`   // smallest value of the repetitions
	High       float64 `json:"high"`  // largest value of the repetitions
}

// A report is the stored form of the results of benchmarks. Benchmarks that were not run again keep their figures.
type report struct {
	RunInfo *page.RunInfo `json:"run_info"` // origin of the newest figures
	Figures []measurement `json:"figures"`
}

// writeTable reads the output of benchmarks, prints the page, and writes PATH.json and PATH.md. It returns an error if
// a benchmark failed or a figure is over its limit.
func writeTable(output io.Reader, path string) error {
	values, failure, err := parse(output)
	if err != nil {
		return err
	}
	if len(values) == 0 {
		return errors.New("read the benchmarks: no figure; run `make bench`")
	}
	var r report
	text, err := os.ReadFile(path + ".json")
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the figures of an earlier run: %w", err)
	}
	info := page.ThisProgram(".")
	r.merge(values, info)
	return errors.Join(r.write(os.Stdout), page.Save(path, r, r.write), failure, overLimits(r.Figures))
}

// parse returns the values of each metric by "BENCHMARK METRIC". failure reports that a benchmark failed.
func parse(output io.Reader) (values map[string][]float64, failure, err error) {
	values = map[string][]float64{}
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) > 0 && fields[0] == "FAIL" {
			failure = errors.New("a benchmark failed; see its output")
		}
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(fields[0], "Benchmark"), "-")
		for i := 2; i+1 < len(fields); i += 2 {
			if v, err := strconv.ParseFloat(fields[i], 64); err == nil {
				key := name + " " + fields[i+1]
				values[key] = append(values[key], v)
			}
		}
	}
	return values, failure, lines.Err()
}

// merge replaces measurements with new ones, and sorts them in the order of figures.
func (r *report) merge(values map[string][]float64, info *page.RunInfo) {
	var out []measurement
	machine := info.Machine.CPU + ", " + format.Count(info.Machine.Cores, "core")
	for _, f := range figures {
		if repetitions := values[f.Benchmark+" "+f.Metric]; repetitions != nil {
			out = append(out, measurement{
				Section: f.Section, Name: f.Name, MeasuredAt: time.Now().UTC().Format("2006-01-02 15:04 UTC"), Commit: info.Commit, Machine: machine,
				Unit: f.Unit, Value: resources.Median(slices.Clone(repetitions)), Low: slices.Min(repetitions), High: slices.Max(repetitions),
			})
		} else if i := slices.IndexFunc(r.Figures, f.matches); i >= 0 {
			out = append(out, r.Figures[i])
		}
	}
	r.RunInfo, r.Figures = info, out
}

func (f figure) matches(m measurement) bool { return f.Section == m.Section && f.Name == m.Name }

func (m measurement) definition() figure {
	return figures[slices.IndexFunc(figures, func(f figure) bool { return f.matches(m) })]
}

func overLimits(rows []measurement) (err error) {
	for _, m := range rows {
		if f := m.definition(); f.Limit > 0 && m.Value > f.Limit {
			err = errors.Join(err, fmt.Errorf("%s, %s is %s %s, over the limit of %s", m.Section, m.Name, short(m.Value), m.Unit, short(f.Limit)))
		}
	}
	return err
}

func (r *report) write(w io.Writer) error {
	fmt.Fprint(w, "# Cost of a soak\n\nWritten by `make bench`.\n")
	for remaining := r.Figures; len(remaining) > 0; {
		first, rows := remaining[0], [][]string(nil)
		for len(remaining) > 0 && remaining[0].Section == first.Section {
			rows, remaining = append(rows, remaining[0].row()), remaining[1:]
		}
		fmt.Fprintf(w, "\n## %s%s\n\nMeasured %s, commit %s, %s.\n\n", strings.ToUpper(first.Section[:1]), first.Section[1:],
			first.MeasuredAt, cmp.Or(first.Commit, "unknown"), first.Machine)
		page.Table(w, []string{"figure", "ours", "limit", "", "peers"}, rows)
	}
	fmt.Fprint(w, "\n## Definitions\n\n")
	for _, m := range r.Figures {
		fmt.Fprintf(w, "- **%s, %s**: %s\n", m.Section, m.Name, m.definition().Definition)
	}
	fmt.Fprintln(w, "\nBrackets contain the smallest and the largest value of the repetitions. Each stream receives one message per second. The\n"+
		"clients of a benchmark run one after the other. The figures of peers were measured earlier, on a machine of the same kind.\n"+
		"KB is 1024 bytes.")
	return page.WriteRunInfo(w, r.RunInfo)
}

func (m measurement) row() []string {
	f, limit, result := m.definition(), " ", " "
	if f.Limit > 0 {
		limit, result = short(f.Limit), "PASS"
		if m.Value > f.Limit {
			result = "OVER"
		}
	}
	return []string{m.Name, m.text(), limit, result, cmp.Or(f.Peers, " ")}
}

func (m measurement) text() string {
	s := short(m.Value)
	if m.Low != m.High {
		s += " (" + short(m.Low) + "…" + short(m.High) + ")"
	}
	return s + " " + m.Unit
}

// short formats a number with three significant digits, or with all digits before the point.
func short(v float64) string {
	switch a := math.Abs(v); {
	case a >= 1:
		return strconv.FormatFloat(v, 'f', max(2-int(math.Log10(a)), 0), 64)
	case a == 0:
		return "0"
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
