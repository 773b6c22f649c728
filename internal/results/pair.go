package results

import (
	"bufio"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/results/compare"
	"github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A Pair is two runs, of any plans.
type Pair struct{ Old, New *Entry }

// ReadPair reads the folders of two runs that were judged.
func ReadPair(older, newer string) (p Pair, err error) {
	for folder, run := range map[string]**Entry{older: &p.Old, newer: &p.New} {
		r := look(filepath.Dir(filepath.Clean(folder)), filepath.Base(folder))
		switch {
		case r == nil:
			return p, fmt.Errorf("%s is not the folder of a run", folder)
		case r.Verdict == nil:
			return p, fmt.Errorf("%s is %s: %s", folder, r.State, r.Why)
		}
		*run = r
	}
	return p, nil
}

// Text says what is not the same in the two.
func (p Pair) Text(w io.Writer) error {
	out := bufio.NewWriter(w)
	for name, r := range p.each() {
		report.Wrapped(out, heading(name), fmt.Sprintf("%s, %s: %s", r.Name, format.Time(r.Started), r.outcome()))
		report.Wrapped(out, heading(""), suite.Title(r.Verdict))
		if trouble := r.trouble(); trouble != "" {
			report.Wrapped(out, heading(""), trouble)
		}
	}
	prefix := heading("changed")
	for _, change := range changes(p.Old, p.New) {
		report.Wrapped(out, prefix, change)
		prefix = heading("")
	}
	if prefix != heading("") {
		report.Wrapped(out, prefix, "nothing: neither versions nor machine nor settings")
	}
	fmt.Fprintln(out)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "metric\told\tnew\t")
	for _, m := range p.metrics() {
		cells := []string{report.Plain(m.Name)}
		for _, r := range p.each() {
			cell := "–"
			if v, known := r.metrics[m.Name]; known {
				cell = number(m, v)
			}
			cells = append(cells, cell)
		}
		fmt.Fprintln(t, strings.Join(cells, "\t")+"\t")
	}
	if err := t.Flush(); err != nil {
		return err //nolint:wrapcheck // of standard output
	}
	fmt.Fprintln(out)
	if err := compare.SamePlan(p.Old.Run, p.New.Run); err != nil {
		report.Wrapped(out, "", "They are of two plans, so their metrics say nothing about the service alone.")
	} else {
		report.Wrapped(out, "", "They are of one plan. What two runs differ by may be chance: soak compare tells, from three runs on.")
	}
	return out.Flush() //nolint:wrapcheck // of standard output
}

// each are the two in their order.
func (p Pair) each() func(yield func(string, *Entry) bool) {
	return func(yield func(string, *Entry) bool) {
		_ = yield("old", p.Old) && yield("new", p.New)
	}
}

// metrics are those of either run, without faults that neither had.
func (p Pair) metrics() (out []verdict.Metric) {
	for _, r := range p.each() {
		for _, m := range suite.Metrics(r.Verdict) {
			known := slices.ContainsFunc(out, func(other verdict.Metric) bool { return other.Name == m.Name })
			if fault := m.Fault && p.Old.metrics[m.Name]+p.New.metrics[m.Name] == 0; !known && !fault {
				out = append(out, m)
			}
		}
	}
	return out
}
