// Package page writes the pages of the tools: tables in Markdown, and figures as JSON, with the origin of the figures.
package page

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/prometheus/procfs"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/safefile"
	"github.com/sse-soak/sse-soak/internal/secret"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// Main runs a tool. A signal cancels the context of run. An error ends the program with exit code 2.
func Main(name string, run func(context.Context) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(2)
	}
}

// Progress prints the progress of a tool on stderr.
func Progress(text string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format(time.TimeOnly)+" "+text+"\n", args...)
}

// Table writes a table in Markdown with aligned columns. An empty cell becomes a dash.
func Table(w io.Writer, columns []string, rows [][]string) {
	t := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	fmt.Fprintf(t, "| %s\t|\n|%s\n", strings.Join(columns, "\t| "), strings.Repeat("---\t|", len(columns)))
	for _, row := range rows {
		cells := slices.Clone(row)
		for i, cell := range cells {
			if cell == "" {
				cells[i] = "–"
			}
		}
		fmt.Fprintf(t, "| %s\t|\n", strings.Join(cells, "\t| "))
	}
	_ = t.Flush()
}

// Save writes the figures to PATH.json and the page to PATH.md.
func Save(path string, figures any, write func(io.Writer) error) error {
	return errors.Join(
		safefile.Write(path+".json", func(w io.Writer) error {
			e := json.NewEncoder(w)
			e.SetIndent("", "  ")
			return e.Encode(figures)
		}),
		safefile.Write(path+".md", write))
}

// LoadAverage returns the load average of the last minute, or 0 if it is unknown.
func LoadAverage() float64 {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0
	}
	load, err := fs.LoadAvg()
	if err != nil {
		return 0
	}
	return load.Load1
}

// A RunInfo is the origin of the figures of a page.
type RunInfo = verdict.RunInfo

// WriteRunInfo writes the section of a page about the origin of its figures.
func WriteRunInfo(w io.Writer, info *RunInfo) error { return report.WriteRunInfo(w, info) }

var versionPattern = regexp.MustCompile(`\d+\.\d+\.\d+`)

// ThisProgram returns the origin of figures that this process measures at root, a clone of the repository. Unknown
// fields are empty.
func ThisProgram(root string) *RunInfo {
	machine := resources.ThisMachine()
	machine.Name = "" // pages are published
	commit := output(exec.Command("git", "-C", root, "describe", "--always", "--abbrev=12", "--exclude=*", "--dirty=+dirty"))
	return &RunInfo{
		Command: secret.Command(append([]string{filepath.Base(os.Args[0])}, os.Args[1:]...)),
		Commit:  commit, Soak: commit, Go: runtime.Version(), Machine: machine,
		K6:    versionPattern.FindString(output(exec.Command(filepath.Join(root, "bin", "k6"), "version"))),
		Nginx: versionPattern.FindString(output(exec.Command("nginx", "-v"))),
	}
}

// Origin returns a line that names the machine, the commit and the time of the figures.
func Origin(info *RunInfo, at time.Time) string {
	m := info.Machine
	return fmt.Sprintf("%s, %s, %s, Linux %s, %s, commit %s, %s", m.CPU, format.Count(m.Cores, "core"), m.System, m.Kernel, info.Go, cmp.Or(info.Commit, "unknown"), at.UTC().Format("2006-01-02 15:04 UTC"))
}

// CheckBuilt returns an error if the programs of the repository at root are not built.
func CheckBuilt(root string) error {
	for _, program := range []string{"soak", "k6", "backend"} {
		if _, err := os.Stat(filepath.Join(root, "bin", program)); err != nil {
			return fmt.Errorf("bin/%s is missing; run `make build`", program)
		}
	}
	return nil
}

func output(c *exec.Cmd) string {
	out, err := c.CombinedOutput() // nginx writes its version to stderr
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
