package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

// A Report is all that one run of bench found, as it is stored.
type Report struct {
	Schema  int      `json:"schema"`
	Machine Machine  `json:"machine"`
	Quick   bool     `json:"quick,omitempty"`
	Figures []Figure `json:"figures"`
}

// merge takes over the figures of an earlier run for the sections that this one left out.
func (r *Report) merge(o *options) error {
	if !o.update {
		return nil
	}
	text, err := os.ReadFile(o.json)
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
	var all []Figure
	for _, s := range sections {
		here := r.of(s.name)
		if len(here) == 0 {
			here = old.of(s.name)
		}
		all = append(all, here...)
	}
	r.Figures = all
	return nil
}

// of are the figures of one section.
func (r *Report) of(section string) (out []Figure) {
	for _, f := range r.Figures {
		if f.Section == section {
			out = append(out, f)
		}
	}
	return out
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

func (r *Report) writeText(w io.Writer) {
	fmt.Fprintf(w, "\n%s\n\n", r.Machine)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\tfigure\tours\tlimit\tpeers")
	section := ""
	for _, f := range r.Figures {
		if f.Section != section {
			section = f.Section
			fmt.Fprintf(t, "%s\t\t\t\t\n", section)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", f.Verdict, f.Name, f.text(), f.limit(), f.Peers)
	}
	_ = t.Flush()
	fmt.Fprintln(w, "\nWhat was measured:")
	for _, f := range r.Figures {
		fmt.Fprintf(w, "- %s, %s: %s\n", f.Section, f.Name, f.Definition)
	}
	fmt.Fprintln(w, "\n"+spread)
	if r.Quick {
		fmt.Fprintln(w, "Quick: at these sizes no limit is judged.")
	}
}

const spread = "In brackets: the smallest and largest of the repetitions, for slopes the 95 % confidence interval."

func (f Figure) limit() string {
	if f.Limit == 0 {
		return ""
	}
	return short(f.Limit)
}

func (r *Report) writeMarkdown(w io.Writer) {
	fmt.Fprintf(w, "# What a soak costs\n\nWritten by `bin/bench`. %s\n", r.Machine)
	if r.Quick {
		fmt.Fprintln(w, "\nA quick run: at these sizes no limit is judged.")
	}
	section := ""
	for _, f := range r.Figures {
		if f.Section != section {
			section = f.Section
			fmt.Fprintf(w, "\n## %s%s\n\nMeasured %s.\n\n| figure | ours | limit | | peers |\n|---|---|---|---|---|\n",
				strings.ToUpper(section[:1]), section[1:], f.Measured)
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s |\n", f.Name, f.text(), f.limit(), f.Verdict, f.Peers)
	}
	fmt.Fprintf(w, "\n## What was measured\n\n")
	for _, f := range r.Figures {
		fmt.Fprintf(w, "- **%s, %s**: %s\n", f.Section, f.Name, f.Definition)
	}
	fmt.Fprintf(w, "\n%s Peers' figures are those that DESIGN.md and issue 2 publish, measured on a\nmachine of the same kind. KB is 1024 bytes.\n", spread)
}

// save writes the files that the flags ask for.
func (r *Report) save(o *options) error {
	if o.json != "" {
		text, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return fmt.Errorf("write %s: %w", o.json, err)
		}
		if err := write(o.json, append(text, '\n')); err != nil {
			return err
		}
	}
	if o.md == "" {
		return nil
	}
	var b strings.Builder
	r.writeMarkdown(&b)
	return write(o.md, []byte(b.String()))
}

func write(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.WriteFile(path, text, 0o644)
}
