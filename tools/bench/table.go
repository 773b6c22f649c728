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
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/tools/page"
)

// A measured figure is one row of the table.
type measured struct {
	Section  string  `json:"section"`
	Name     string  `json:"name"`
	Measured string  `json:"measured"` // when
	Commit   string  `json:"commit,omitempty"`
	Unit     string  `json:"unit"`
	Value    float64 `json:"value"` // median of the repetitions
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
}

// A report is the stored form of benchmarks. Benchmarks that were not run again keep their figures.
type report struct {
	Ran     *page.RunInfo `json:"ran"` // of the last benchmarks
	Figures []measured    `json:"figures"`
}

// writeTable reads the output of benchmarks, and writes PATH.json and PATH.md. It fails if a benchmark failed or a figure is over
// its limit.
func writeTable(output io.Reader, path string) error {
	values, failed, err := parse(output)
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
	ran := page.ThisProgram(".")
	r.merge(values, ran)
	return errors.Join(r.write(os.Stdout), page.Save(path, r, r.write), failed, overLimits(r.Figures))
}

// parse returns the values of each metric by BENCHMARK METRIC, and an error for benchmarks that failed.
func parse(output io.Reader) (values map[string][]float64, failed, err error) {
	values = map[string][]float64{}
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) > 0 && fields[0] == "FAIL" {
			failed = errors.New("a benchmark failed: see its output")
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
	return values, failed, lines.Err()
}

// merge puts new values in place of earlier ones, in the order of figures.
func (r *report) merge(values map[string][]float64, ran *page.RunInfo) {
	var out []measured
	for _, f := range figures {
		if all := values[f.Benchmark+" "+f.Metric]; all != nil {
			out = append(out, measured{
				Section: f.Section, Name: f.Name, Measured: time.Now().UTC().Format("2006-01-02 15:04 UTC"), Commit: ran.Commit,
				Unit: f.Unit, Value: resources.Median(slices.Clone(all)), Low: slices.Min(all), High: slices.Max(all),
			})
		} else if i := slices.IndexFunc(r.Figures, f.matches); i >= 0 {
			out = append(out, r.Figures[i])
		}
	}
	r.Ran, r.Figures = ran, out
}

func (f figure) matches(m measured) bool { return f.Section == m.Section && f.Name == m.Name }

// definition returns the figure that a row shows.
func (m measured) definition() figure {
	return figures[slices.IndexFunc(figures, func(f figure) bool { return f.matches(m) })]
}

// overLimits names the figures over their limits.
func overLimits(rows []measured) (err error) {
	for _, m := range rows {
		if f := m.definition(); f.Limit > 0 && m.Value > f.Limit {
			err = errors.Join(err, fmt.Errorf("%s, %s is %s %s, over the limit of %s", m.Section, m.Name, short(m.Value), m.Unit, short(f.Limit)))
		}
	}
	return err
}

// write writes the page.
func (r *report) write(w io.Writer) error {
	machine := resources.ThisMachine()
	fmt.Fprintf(w, "# What a soak costs\n\nWritten by `make bench`. %s, %d cores, Linux %s, %s.\n", machine.CPU, machine.Cores, machine.Kernel, runtime.Version())
	for rest := r.Figures; len(rest) > 0; {
		first, rows := rest[0], [][]string(nil)
		for len(rest) > 0 && rest[0].Section == first.Section {
			rows, rest = append(rows, rest[0].row()), rest[1:]
		}
		fmt.Fprintf(w, "\n## %s%s\n\nMeasured %s, commit %s.\n\n", strings.ToUpper(first.Section[:1]), first.Section[1:], first.Measured, first.Commit)
		page.Table(w, []string{"figure", "ours", "limit", "", "peers"}, rows)
	}
	fmt.Fprint(w, "\n## What was measured\n\n")
	for _, m := range r.Figures {
		fmt.Fprintf(w, "- **%s, %s**: %s\n", m.Section, m.Name, m.definition().Definition)
	}
	fmt.Fprintln(w, "\nIn brackets: the smallest and largest of the repetitions. Each stream gets one message per second, and the contenders of a\n"+
		"benchmark take turns. Peers' figures were measured before, on a machine of the same kind. KB is 1024 bytes.")
	return page.WriteRunInfo(w, r.Ran)
}

// row returns the cells of a figure.
func (m measured) row() []string {
	f, limit, verdict := m.definition(), " ", " "
	if f.Limit > 0 {
		limit, verdict = short(f.Limit), "PASS"
		if m.Value > f.Limit {
			verdict = "OVER"
		}
	}
	return []string{m.Name, m.text(), limit, verdict, cmp.Or(f.Peers, " ")}
}

// text returns the value with the spread of its repetitions.
func (m measured) text() string {
	s := short(m.Value)
	if m.Low != m.High {
		s += " (" + short(m.Low) + "…" + short(m.High) + ")"
	}
	return s + " " + m.Unit
}

// short returns three significant digits, or all before the point.
func short(v float64) string {
	switch a := math.Abs(v); {
	case a >= 1:
		return strconv.FormatFloat(v, 'f', max(2-int(math.Log10(a)), 0), 64)
	case a == 0:
		return "0"
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
