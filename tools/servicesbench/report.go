package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/sse-soak/sse-soak/internal/resources"
	"github.com/sse-soak/sse-soak/internal/safefile"
	"github.com/sse-soak/sse-soak/tools/whatran"
)

// A report is all that one run of servicesbench found.
type report struct {
	Schema  int          `json:"schema"`
	Suite   string       `json:"suite,omitempty"` // "": the soak
	Machine machine      `json:"machine"`
	Ran     *whatran.Ran `json:"ran,omitempty"`
	Load    load         `json:"load"`
	Rows    []row        `json:"services"`
}

// machine names what it was measured on. No name of a host: results are published.
type machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	System string `json:"system"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
	Commit string `json:"commit,omitempty"`
	Date   string `json:"date"`
}

func thisMachine(commit string) machine {
	m := resources.ThisMachine()
	return machine{m.CPU, m.Cores, m.System, m.Kernel, runtime.Version(), commit, time.Now().UTC().Format("2006-01-02 15:04 UTC")}
}

// save writes the figures and the table.
func (r *report) save(dir string) error {
	figures := func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	return errors.Join(
		safefile.Write(filepath.Join(dir, "services.json"), figures), safefile.Write(filepath.Join(dir, "services.md"), r.write),
	)
}

// again writes the table of a folder anew, from its figures and the verdicts of its runs.
func again(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, "services.json"))
	if err != nil {
		return fmt.Errorf("read the figures: %w", err)
	}
	var r report
	if err := json.Unmarshal(text, &r); err != nil {
		return fmt.Errorf("read the figures of %s: %w", dir, err)
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Cost.WindowS == 0 { // it was not measured to the end: its findings say why
			continue
		}
		row.Findings = nil
		row.outcomeOf(filepath.Join(dir, "runs", row.Service), nil, nil)
		row.charge(row.Cost)
	}
	return r.save(dir)
}
