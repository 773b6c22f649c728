// Package html writes report.html: one file that a person looks at first. It needs no network
// and opens from disk.
//
// A page is data: a banner and sections of sentences, tables and charts, and each suite names the sections that it
// needs (subject.go). page.html.tmpl lays them out, and the script in
// page/, bundled by `make build` into bundle/, draws the charts. Without the bundle (a bare
// `go build`) all is there but the drawings, and the page says so.
package html

import (
	"io"

	"github.com/sse-soak/sse-soak/internal/preflight"
	"github.com/sse-soak/sse-soak/internal/resources"
	"github.com/sse-soak/sse-soak/internal/results/compare"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A Run is all that a page shows.
type Run struct {
	Verdict *verdict.Verdict
	Merged  *shard.Merged
	Samples []resources.Sample
	Circumstances
	Baseline Baseline
	Files    []File // to be downloaded from within the page
}

// Circumstances are what `soak run` knew beside the plan; all may be empty.
type Circumstances struct {
	Command       []string
	Version       string // of soak
	Commit        string // that it was built of
	Go            string // that it was built with
	Backend       string // version
	Nginx         string
	Cores         string            // which the service and the runners had of their own, or why they had none
	Proxies       []string          // that the runners went through
	Machine       resources.Machine // of `soak run`
	Limits        preflight.Machine
	ResourcesFrom string // the Prometheus that Samples come from, "" when soak sampled itself
	OneClock      bool   // target and runners are on one host
}

// A Baseline is what a run is compared with.
type Baseline struct {
	Against *compare.Run  // the one run to show differences from; nil: there is none
	Old     []compare.Run // the runs that say what is noise, Against among them
	This    *compare.Run
	Why     string // why there is none, in a sentence
}

// A File is one to download.
type File struct {
	Name    string
	Content []byte
}

// Write writes the page of a run.
func Write(w io.Writer, r *Run) error {
	return newSubject(r).page().Write(w)
}
