package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/prometheus/procfs"

	"github.com/sse-soak/sse-soak/internal/resources"
	"github.com/sse-soak/sse-soak/tools/whatran"
)

// Verdict is what a metric is against its limit.
type Verdict string

// A metric without limit, or at a size the limit is not meant for, is none of the others.
const (
	Pass      Verdict = "PASS"
	Over      Verdict = "OVER"
	Undecided Verdict = "undecided" // the limit lies within the uncertainty
	None      Verdict = ""
)

// A Metric is one line of the table.
type Metric struct {
	Section    string  `json:"section"`
	Measured   string  `json:"measured"` // when
	Commit     string  `json:"commit,omitempty"`
	Name       string  `json:"name"`
	Definition string  `json:"definition"` // one line: what was measured how
	Unit       string  `json:"unit"`
	Value      float64 `json:"value"`
	Low        float64 `json:"low"` // smallest and largest of the repetitions,
	High       float64 `json:"high"`
	Interval   bool    `json:"confidence_interval,omitempty"` // or the 95 % confidence interval
	Limit      float64 `json:"limit,omitempty"`               // 0: none
	Verdict    Verdict `json:"verdict,omitempty"`
	Peers      string  `json:"peers,omitempty"` // measured before, on a machine of the same kind, same unit
}

// metric is the median of what was measured once or several times.
func metric(name, unit string, values ...float64) Metric {
	low, high := slices.Min(values), slices.Max(values)
	return Metric{Name: name, Unit: unit, Value: median(values), Low: low, High: high}
}

func median(values []float64) float64 { return resources.Median(slices.Clone(values)) }

// limited sets the limit (0: none), means the definition and peers the others' figures.
func (f Metric) limited(limit float64) Metric { f.Limit = limit; return f }
func (f Metric) peers(others string) Metric   { f.Peers = others; return f }
func (f Metric) means(format string, args ...any) Metric {
	f.Definition = fmt.Sprintf(format, args...)
	return f
}

// judge compares with the limit. Where there is a confidence interval, the limit must lie
// outside of it for a verdict.
func (f *Metric) judge(quick bool) {
	low, high := f.Value, f.Value
	if f.Interval {
		low, high = f.Low, f.High
	}
	switch {
	case quick || f.Limit == 0:
		f.Verdict = None
	case high <= f.Limit:
		f.Verdict = Pass
	case low > f.Limit || math.IsNaN(f.Value):
		f.Verdict = Over
	default:
		f.Verdict = Undecided
	}
}

// text is the value with the spread of its repetitions.
func (f Metric) text() string {
	s := short(f.Value)
	if f.Low != f.High {
		s += " (" + short(f.Low) + "…" + short(f.High) + ")"
	}
	return s + " " + f.Unit
}

// short writes three significant digits, or all before the point.
func short(v float64) string {
	switch a := math.Abs(v); {
	case a >= 1:
		return strconv.FormatFloat(v, 'f', max(2-int(math.Log10(a)), 0), 64)
	case a == 0:
		return "0"
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// A Report is all that one run of bench found, as it is stored.
type Report struct {
	Schema  int          `json:"schema"`
	Machine Machine      `json:"machine"`
	Ran     *whatran.Ran `json:"ran,omitempty"` // of the last sections that were measured
	Quick   bool         `json:"quick,omitempty"`
	Figures []Metric     `json:"figures"`
}

// Machine names what the figures were measured on. No name of a host: results are published.
type Machine struct {
	CPU        string `json:"cpu"`
	Cores      int    `json:"cores"`
	Kernel     string `json:"kernel"`
	Go         string `json:"go"`
	Date       string `json:"date"`
	LoadBefore string `json:"load_before"` // 1-minute average: over the cores, figures are noisy
	LoadAfter  string `json:"load_after"`
}

const minutes = "2006-01-02 15:04 UTC"

func thisMachine() Machine {
	m := resources.ThisMachine()
	return Machine{
		CPU: m.CPU, Cores: m.Cores, Kernel: m.Kernel, Go: runtime.Version(),
		Date: time.Now().UTC().Format(minutes), LoadBefore: loadAverage(),
	}
}

func loadAverage() string {
	fs, err := procfs.NewDefaultFS()
	if err == nil {
		if load, err := fs.LoadAvg(); err == nil {
			return strconv.FormatFloat(load.Load1, 'f', 2, 64)
		}
	}
	return "unknown"
}

func (r *Report) add(section string, began time.Time, figures []Metric) {
	for _, f := range figures {
		f.Section, f.Measured = section, began.UTC().Format(minutes)
		if r.Ran != nil {
			f.Commit = r.Ran.Commit
		}
		f.judge(r.Quick)
		r.Figures = append(r.Figures, f)
	}
}

// merge takes over the figures of an earlier run for the sections that this one left out.
func (r *Report) merge(path string) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var old Report
	if err == nil {
		err = json.Unmarshal(text, &old)
	}
	if err != nil {
		return fmt.Errorf("read the earlier run: %w", err)
	}
	var all []Metric
	for _, s := range sections {
		of := func(f Metric) bool { return f.Section == s.name }
		from := r.Figures
		if !slices.ContainsFunc(from, of) {
			from = old.Figures
		}
		for _, f := range from {
			if of(f) {
				all = append(all, f)
			}
		}
	}
	r.Figures = all
	return nil
}

// broken names the figures over their limit.
func (r *Report) broken() (names []string) {
	for _, f := range r.Figures {
		if f.Verdict == Over {
			names = append(names, fmt.Sprintf("%s: %s is %s %s, the limit %s", f.Section, f.Name, short(f.Value), f.Unit, short(f.Limit)))
		}
	}
	return names
}

// write makes Markdown that can be read on a terminal, too.
func (r *Report) write(w io.Writer) {
	m := r.Machine
	fmt.Fprintf(w, "# What a soak costs\n\nWritten by `bin/bench`. %s, %d cores, Linux %s, %s, %s, load %s before and %s after.\n",
		m.CPU, m.Cores, m.Kernel, m.Go, m.Date, m.LoadBefore, m.LoadAfter)
	if r.Quick {
		fmt.Fprintln(w, "\nA quick run: at these sizes no limit is judged.")
	}
	table := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	for i, f := range r.Figures {
		if i == 0 || f.Section != r.Figures[i-1].Section {
			_ = table.Flush()
			fmt.Fprintf(w, "\n## %s%s\n\nMeasured %s, commit %s.\n\n", strings.ToUpper(f.Section[:1]), f.Section[1:], f.Measured, cmp.Or(f.Commit, "not recorded"))
			fmt.Fprint(table, "| figure\t| ours\t| limit\t|\t| peers |\n|---\t|---\t|---\t|---\t|---|\n")
		}
		limit := ""
		if f.Limit != 0 {
			limit = short(f.Limit)
		}
		fmt.Fprintf(table, "| %s\t| %s\t| %s\t| %s\t| %s |\n", f.Name, f.text(), limit, f.Verdict, f.Peers)
	}
	_ = table.Flush()
	fmt.Fprint(w, "\n## What was measured\n\n")
	for _, f := range r.Figures {
		fmt.Fprintf(w, "- **%s, %s**: %s\n", f.Section, f.Name, f.Definition)
	}
	fmt.Fprintln(w, "\nIn brackets: the smallest and largest of the repetitions, for slopes the 95 % confidence interval. Peers' figures\n"+
		"were measured before, on a machine of the same kind. KB is 1024 bytes.")
	_ = whatran.Write(w, r.Ran)
}

// save writes the files that the flags ask for.
func (r *Report) save(b *bench) error {
	if b.update {
		if err := r.merge(b.json); err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	var table strings.Builder
	r.write(&table)
	return errors.Join(write(b.json, string(text)+"\n"), write(b.md, table.String()))
}

// write makes a file; no path, no file.
func write(path, text string) error {
	if path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.WriteFile(path, []byte(text), 0o644)
}
