package main

import (
	"bufio"
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
	"text/tabwriter"
	"time"

	"github.com/sse-soak/sse-soak/internal/resources"
	"github.com/sse-soak/sse-soak/tools/whatran"
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

// A report is what is kept of benchmarks. Benchmarks that were not run again keep their figures.
type report struct {
	Ran     *whatran.Ran `json:"ran"` // of the last benchmarks
	Figures []measured   `json:"figures"`
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
	ran := whatran.Here(".")
	r.merge(values, ran)
	if text, err = json.MarshalIndent(r, "", "  "); err != nil {
		return err
	}
	var table strings.Builder
	r.write(&table)
	fmt.Print(table.String())
	err = errors.Join(os.WriteFile(path+".json", append(text, '\n'), 0o644), os.WriteFile(path+".md", []byte(table.String()), 0o644))
	return errors.Join(err, failed, over(r.Figures))
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
func (r *report) merge(values map[string][]float64, ran *whatran.Ran) {
	var out []measured
	for _, f := range figures {
		if all := values[f.Benchmark+" "+f.Metric]; all != nil {
			out = append(out, measured{
				Section: f.Section, Name: f.Name, Measured: time.Now().UTC().Format("2006-01-02 15:04 UTC"), Commit: ran.Commit,
				Unit: f.Unit, Value: resources.Median(slices.Clone(all)), Low: slices.Min(all), High: slices.Max(all),
			})
		} else if i := slices.IndexFunc(r.Figures, f.is); i >= 0 {
			out = append(out, r.Figures[i])
		}
	}
	r.Ran, r.Figures = ran, out
}

func (f figure) is(m measured) bool { return f.Section == m.Section && f.Name == m.Name }

// definition returns the figure that a row shows.
func (m measured) definition() figure {
	return figures[slices.IndexFunc(figures, func(f figure) bool { return f.is(m) })]
}

// over names the figures over their limits.
func over(rows []measured) (err error) {
	for _, m := range rows {
		if f := m.definition(); f.Limit > 0 && m.Value > f.Limit {
			err = errors.Join(err, fmt.Errorf("%s, %s is %s %s, over the limit of %s", m.Section, m.Name, short(m.Value), m.Unit, short(f.Limit)))
		}
	}
	return err
}

// write writes Markdown that can be read on a terminal, too.
func (r *report) write(w io.Writer) {
	machine := resources.ThisMachine()
	fmt.Fprintf(w, "# What a soak costs\n\nWritten by `make bench`. %s, %d cores, Linux %s, %s.\n", machine.CPU, machine.Cores, machine.Kernel, runtime.Version())
	table := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	for i, m := range r.Figures {
		if i == 0 || m.Section != r.Figures[i-1].Section {
			_ = table.Flush()
			fmt.Fprintf(w, "\n## %s%s\n\nMeasured %s, commit %s.\n\n", strings.ToUpper(m.Section[:1]), m.Section[1:], m.Measured, m.Commit)
			fmt.Fprint(table, "| figure\t| ours\t| limit\t|\t| peers |\n|---\t|---\t|---\t|---\t|---|\n")
		}
		f, limit, verdict := m.definition(), "", ""
		if f.Limit > 0 {
			limit, verdict = short(f.Limit), "PASS"
			if m.Value > f.Limit {
				verdict = "OVER"
			}
		}
		fmt.Fprintf(table, "| %s\t| %s\t| %s\t| %s\t| %s |\n", m.Name, m.text(), limit, verdict, f.Peers)
	}
	_ = table.Flush()
	fmt.Fprint(w, "\n## What was measured\n\n")
	for _, m := range r.Figures {
		fmt.Fprintf(w, "- **%s, %s**: %s\n", m.Section, m.Name, m.definition().Definition)
	}
	fmt.Fprintln(w, "\nIn brackets: the smallest and largest of the repetitions. Each stream gets one message per second, and the contenders of a\n"+
		"benchmark take turns. Peers' figures were measured before, on a machine of the same kind. KB is 1024 bytes.")
	_ = whatran.Write(w, r.Ran)
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
