// Package whatran describes the origin of the figures on the pages that tools write, as reports of runs do.
package whatran

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/resources"
	"github.com/sse-soak/sse-soak/internal/secret"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A Ran is what made the figures of a page.
type Ran = verdict.Ran

// Write writes the section of a page.
func Write(w io.Writer, ran *Ran) error { return report.WriteRan(w, ran) }

var release = regexp.MustCompile(`\d+\.\d+\.\d+`)

// Here is this program with its arguments, on this machine, with the programs of the repository at root. What cannot be
// found out stays empty.
func Here(root string) *Ran {
	machine := resources.ThisMachine()
	machine.Name = "" // pages are published
	commit := said(exec.Command("git", "-C", root, "describe", "--always", "--abbrev=12", "--exclude=*", "--dirty=+dirty"))
	return &Ran{
		Command: secret.Command(append([]string{filepath.Base(os.Args[0])}, os.Args[1:]...)),
		Commit:  commit, Soak: commit, Go: runtime.Version(), Machine: machine,
		K6:    release.FindString(said(exec.Command(filepath.Join(root, "bin", "k6"), "version"))),
		Nginx: release.FindString(said(exec.Command("nginx", "-v"))),
	}
}

// CheckBuilt checks that the programs of the repository at root are built.
func CheckBuilt(root string) error {
	for _, program := range []string{"soak", "k6", "backend"} {
		if _, err := os.Stat(filepath.Join(root, "bin", program)); err != nil {
			return fmt.Errorf("bin/%s is missing; run `make build`", program)
		}
	}
	return nil
}

func said(c *exec.Cmd) string {
	out, err := c.CombinedOutput() // nginx says its version on stderr
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
