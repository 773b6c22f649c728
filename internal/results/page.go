package results

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/report/html"
	"github.com/sse-soak/sse-soak/internal/resources"
	"github.com/sse-soak/sse-soak/internal/results/compare"
	"github.com/sse-soak/sse-soak/internal/safefile"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// mostInPage is the largest file, in bytes, that a page carries: with the table of 100,000
// connections in it no browser would open it fast. The file is beside the page.
const mostInPage = 8 << 20

// page gathers what report.html shows. verdict.json and the tables beside it must be there
// already.
func (d Dir) page(v *verdict.Verdict, m *shard.Merged, samples []resources.Sample, against Dir) (*html.Run, error) {
	first := 0
	if len(m.Runners) > 0 {
		first = m.Runners[0].Index
	}
	run := d.Seen(first) // what cannot be read is already a problem of the verdict
	out := &html.Run{Verdict: v, Merged: m, Samples: samples, Circumstances: html.Circumstances{
		Command: run.Command, Version: run.Version, Commit: run.Commit, Go: run.Go, Backend: run.Backend, Nginx: run.Nginx, Proxies: run.Proxies, Cores: run.Cores, Machine: run.Machine,
		Limits: run.Limits, ResourcesFrom: run.ResourcesFrom, OneClock: run.OneClock,
	}}
	names := []string{VerdictFile, "series.csv"}
	if hasConnections(v) {
		names = append(names, ConnectionsFile)
	}
	for i := range v.Tables {
		names = append(names, report.TableFile(&v.Tables[i]))
	}
	if len(v.Cuts) > 0 {
		names = append(names, CutsFile)
	}
	for _, name := range names {
		content, err := safefile.Read(d.Path(name), mostInPage)
		if errors.Is(err, safefile.ErrTooLarge) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("put %s into the page: %w", name, err)
		}
		out.Files = append(out.Files, html.File{Name: name, Content: content})
	}
	var err error
	out.Baseline, err = d.baseline(v, against)
	return out, err
}

// baseline is the run to compare this one with, which is against or else the last one beside it that passed with the same
// plan, and the earlier runs for the noise band.
func (d Dir) baseline(v *verdict.Verdict, against Dir) (b html.Baseline, err error) {
	if v.Verdict == verdict.Invalid {
		b.Why = "This run is invalid: it proves nothing, so it is not compared with others."
		return b, nil
	}
	this, err := compare.Read(string(d))
	if err != nil {
		return b, err
	}
	b.This = &this
	folder, err := filepath.Abs(string(d))
	if err != nil {
		return b, err
	}
	b.Old, err = compare.Earlier(filepath.Dir(folder), this)
	if err != nil {
		return b, fmt.Errorf("look for earlier runs: %w", err)
	}
	if against != "" {
		chosen, err := compare.Read(string(against))
		if err == nil {
			err = compare.SamePlan(chosen, this)
		}
		if err == nil && chosen.Verdict.TestID == v.TestID {
			err = fmt.Errorf("%s is the run itself", against)
		}
		if err != nil {
			return b, errors.Join(errors.New("the baseline does not fit"), err)
		}
		b.Against = &chosen
		for _, r := range b.Old {
			if r.Verdict.TestID == chosen.Verdict.TestID {
				return b, nil
			}
		}
		b.Old = append(b.Old, chosen)
		return b, nil
	}
	if len(b.Old) == 0 {
		b.Why = "There is no earlier passing run of this plan beside this one; with soak report --baseline it is held against any run of the same plan."
		return b, nil
	}
	b.Against = &b.Old[0]
	return b, nil
}
