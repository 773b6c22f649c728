package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/tools/page"
)

// A row has the counts of one kind, or of all clean or all faulty scenarios.
type row struct {
	Group, Kind    string
	Runs, Repeated int            // numbers of scenarios, and of scenarios that ran more than once
	Classes        map[string]int // number of scenarios by class of the result
}

// A summary is the content of campaign.json.
type summary struct {
	Commit        string
	Machine       resources.Machine
	RunInfo       *page.RunInfo `json:"Ran,omitempty"`
	Seed          uint64
	Runs          int
	Clean, Faulty *row
	Kinds         []*row
	Bad           []*result `json:",omitempty"` // results that show a bug
	WallSeconds   float64
}

func (c *campaign) summary() *summary {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &summary{Seed: c.seed, Runs: len(c.results), Machine: resources.ThisMachine(), RunInfo: page.ThisProgram(c.root), WallSeconds: time.Since(c.startTime).Seconds()}
	rows := map[[2]string]*row{}
	rowOf := func(group, kind string) *row {
		if rows[[2]string{group, kind}] == nil {
			rows[[2]string{group, kind}] = &row{Group: group, Kind: kind, Classes: map[string]int{}}
		}
		return rows[[2]string{group, kind}]
	}
	s.Clean, s.Faulty = rowOf("", "clean"), rowOf("", "faulty")
	for _, r := range c.results {
		all, kind := s.Faulty, r.Scenario.Kind
		if r.Scenario.isClean() {
			all, kind = s.Clean, cmp.Or(r.Scenario.Family, r.Scenario.Suite, "soak")
		}
		for _, sum := range []*row{all, rowOf(r.Scenario.Group, kind)} {
			sum.Runs++
			sum.Classes[r.Class]++
			sum.Repeated += btoi(r.Repeated)
		}
		if r.isBug() {
			s.Bad = append(s.Bad, r)
		}
	}
	for _, k := range rows {
		if k.Group != "" {
			s.Kinds = append(s.Kinds, k)
		}
	}
	slices.SortFunc(s.Kinds, func(a, b *row) int { return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind)) })
	return s
}

// isAcceptable reports whether scenarios ran, no fault was missed, and every clean run passed or was saturated. At
// least 99 % of the decided faults must also have been found. A fault is decided unless its class is saturated or
// reported undecided.
func (s *summary) isAcceptable() bool {
	faulty, clean := s.Faulty.Classes, s.Clean.Classes
	decidedRuns := s.Faulty.Runs - faulty[classSaturated] - faulty[classUndecided]
	return s.Runs > 0 && faulty[classMissed] == 0 && clean[classFalseAlarm] == 0 && clean[classNoVerdict] == 0 && 100*faulty[classFound] >= 99*decidedRuns
}

// line returns the progress of a campaign with the given number of runs.
func (s *summary) line(runs int) string {
	text := fmt.Sprintf("campaign %d of %d", s.Runs, runs)
	for _, total := range []*row{s.Faulty, s.Clean} {
		text += fmt.Sprintf("; %d %s", total.Runs, total.Kind)
		for _, class := range classes {
			if n := total.Classes[class]; n > 0 {
				text += fmt.Sprintf(", %d %s", n, class)
			}
		}
	}
	return text
}

// sentence returns the differences of a result that shows a bug, and the command that repeats the run.
func (r *result) sentence() string {
	sc := r.Scenario
	service := cmp.Or(sc.Suite, sc.Family, "bin/backend")
	if sc.Hub != nil {
		service = sc.Hub.Form
	}
	if sc.Service != nil {
		service = strings.TrimSpace(sc.Suite + " ids " + sc.Service.IDs)
	}
	repeat := fmt.Sprintf("make campaign SEED=%d RUNS=1", sc.Seed)
	if r.Only != "" {
		repeat += fmt.Sprintf(" KIND='%s'", r.Only)
	}
	return fmt.Sprintf("%s: %s/%s (%s): %s; repeat: %s", r.Class, sc.Group, sc.Kind, service, strings.Join(r.Differences, "; "), repeat)
}

func (s *summary) write(w io.Writer) error {
	m := s.Machine
	fmt.Fprintf(w, "# A campaign of %s\n\nSeeds from %d on, commit %s, on %s, %s, %d GiB, %s, Linux %s.\n\n", format.Plural(s.Runs, "run", "runs"),
		s.Seed, cmp.Or(s.Commit, "unknown"), m.CPU, format.Count(m.Cores, "core"), m.Memory>>30, m.System, m.Kernel)
	var rows [][]string
	for _, k := range append(slices.Clone(s.Kinds), s.Faulty, s.Clean) {
		cells := []string{k.Group, k.Kind, strconv.Itoa(k.Runs)}
		for _, class := range classes {
			cells = append(cells, formatCount(k.Classes[class]))
		}
		rows = append(rows, append(cells, formatCount(k.Repeated)))
	}
	page.Table(w, slices.Concat([]string{"group", "kind", "runs"}, classes, []string{"repeated"}), rows)
	for _, b := range s.Bad {
		fmt.Fprintf(w, "\n- %s", b.sentence())
	}
	fmt.Fprintln(w)
	return page.WriteRunInfo(w, s.RunInfo)
}

func formatCount(n int) string {
	if n == 0 {
		return "·"
	}
	return strconv.Itoa(n)
}

func (s *summary) save(out string) error {
	return errors.Join(s.write(os.Stdout), page.Save(filepath.Join(out, "campaign"), s, s.write))
}
