package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/sse-soak/sse-soak/internal/resources"
)

// A row is the counts of one kind.
type row struct {
	Group, Kind                                                     string
	PutIn, Exactly, Undecided, Otherwise, Missed, Starved, Repeated int
	Broken                                                          int
	FalseAlarms                                                     int
}

func (w *row) add(r *result) {
	w.PutIn++
	w.Repeated += btoi(r.Repeated)
	switch r.Class {
	case foundExactly:
		w.Exactly++
	case undecided:
		w.Undecided++
	case otherwise:
		w.Otherwise++
	case missed:
		w.Missed++
	case starved:
		w.Starved++
	case broken:
		w.Broken++
	case falseAlarm:
		w.FalseAlarms++
	}
}

// A summary is campaign.json.
type summary struct {
	Commit      string
	Machine     resources.Machine
	Seed        uint64
	Runs        int
	Clean       row
	Faulty      row
	Kinds       []row
	Bad         []*result `json:",omitempty"`
	WallSeconds float64
}

func (c *campaign) summary() *summary {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &summary{Seed: c.seed, Runs: len(c.results), Machine: resources.ThisMachine(), Clean: row{Kind: "clean"}, Faulty: row{Kind: "faulty"}}
	kinds := map[string]*row{}
	for _, r := range c.results {
		sum := &s.Faulty
		if r.Scenario.clean() {
			sum = &s.Clean
		}
		sum.add(r)
		name := r.Scenario.Group + "/" + r.Scenario.Kind
		if r.Scenario.clean() {
			name = "clean/" + cmp.Or(r.Scenario.Suite, "soak")
		}
		if kinds[name] == nil {
			group, kind, _ := strings.Cut(name, "/")
			kinds[name] = &row{Group: group, Kind: kind}
		}
		kinds[name].add(r)
		if r.bad() {
			s.Bad = append(s.Bad, r)
		}
	}
	for _, k := range kinds {
		s.Kinds = append(s.Kinds, *k)
	}
	slices.SortFunc(s.Kinds, func(a, b row) int { return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind)) })
	return s
}

// good: no fault was missed, every clean run passed or was starved, and 99 % of the decided faults were
// found exactly.
func (s *summary) good() bool {
	decided := s.Faulty.PutIn - s.Faulty.Starved - s.Faulty.Undecided
	return s.Runs > 0 && s.Faulty.Missed == 0 && s.Clean.FalseAlarms == 0 && s.Clean.Broken == 0 && 100*s.Faulty.Exactly >= 99*decided
}

var columns = []string{"group", "kind", "put in", "found exactly", "undecided, said so", "found otherwise", "missed", "false alarms", "starved", "no verdict", "repeated"}

func (w *row) cells() []string {
	n := func(i int) string { return strings.Replace(itoa(i), "0", "·", btoi(i == 0)) }
	return []string{w.Group, w.Kind, n(w.PutIn), n(w.Exactly), n(w.Undecided), n(w.Otherwise), n(w.Missed), n(w.FalseAlarms), n(w.Starved), n(w.Broken), n(w.Repeated)}
}

func (s *summary) rows() [][]string {
	var out [][]string
	for _, k := range append(slices.Clone(s.Kinds), s.Faulty, s.Clean) {
		out = append(out, k.cells())
	}
	return out
}

// text writes the table for a terminal.
func (s *summary) text(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(columns, "\t"))
	for _, r := range s.rows() {
		fmt.Fprintln(t, strings.Join(r, "\t"))
	}
	_ = t.Flush()
	for _, b := range s.Bad {
		fmt.Fprintln(w, b.sentence())
	}
}

// sentence names a result that is a bug, and how to repeat it.
func (r *result) sentence() string {
	sc := r.Scenario
	service := cmp.Or(sc.Suite, "own backend")
	if sc.Service != nil {
		service = strings.TrimSpace(sc.Suite + " ids " + sc.Service.IDs)
	}
	repeat := fmt.Sprintf("make campaign SEED=%d RUNS=1", sc.Seed)
	if r.Only != "" {
		repeat += fmt.Sprintf(" KIND='%s'", r.Only)
	}
	return fmt.Sprintf("%s: %s/%s (%s): %s\n  repeat: %s", r.Class, sc.Group, sc.Kind, service, strings.Join(r.Differences, "; "), repeat)
}

func (s *summary) markdown(w io.Writer) {
	fmt.Fprintf(w, "# A campaign of %d runs\n\nSeeds from %d on, commit %s, on %s.\n\n", s.Runs, s.Seed, s.Commit, describe(s.Machine))
	fmt.Fprintf(w, "| %s |\n|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
	for _, r := range s.rows() {
		fmt.Fprintf(w, "| %s |\n", strings.Join(r, " | "))
	}
	for _, b := range s.Bad {
		fmt.Fprintf(w, "\n- %s", strings.ReplaceAll(b.sentence(), "\n  ", "; "))
	}
	fmt.Fprintln(w)
}

func describe(m resources.Machine) string {
	return fmt.Sprintf("%s, %d cores, %d GiB, %s, Linux %s", m.CPU, m.Cores, m.Memory>>30, m.System, m.Kernel)
}

// save writes campaign.json and campaign.md.
func (s *summary) save(out string) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, "campaign.json"), append(b, '\n'), 0o644); err != nil {
		return err
	}
	var md strings.Builder
	s.markdown(&md)
	return os.WriteFile(filepath.Join(out, "campaign.md"), []byte(md.String()), 0o644)
}
