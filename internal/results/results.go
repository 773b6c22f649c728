// Package results defines the files in the folder of a run, results/TESTID, and makes the verdict and its reports from
// them. It also lists the runs of a folder with the changes from one run to the next.
package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/safefile"
	"github.com/sse-soak/sse-soak/internal/shard/store"
)

// The files of a run.
const (
	PlanFile        = "plan.json"
	RunFile         = "run.json"
	LedgerFile      = "backend-ledger.ndjson"
	ResourcesFile   = "resources.ndjson"
	MachinesFile    = "machines.json" // records of machines from a Prometheus server
	VerdictFile     = "verdict.json"
	PageFile        = "report.html"
	ConnectionsFile = "connections.csv" // of a run with streams
	CutsFile        = "cuts.csv"        // of a run that disconnects its own streams
	ShardsDir       = "shards"
)

// A Dir is the folder of a run.
type Dir string

// Path returns the path of a file in the folder.
func (d Dir) Path(name string) string { return filepath.Join(string(d), name) }

// NewTestID returns the time in UTC, such as 20260131-235959. If out has a folder of that name, it appends a number.
func NewTestID(out string, now time.Time) string {
	id := now.UTC().Format("20060102-150405")
	for n, candidate := 2, id; ; n++ {
		if _, err := os.Stat(filepath.Join(out, candidate)); err != nil {
			return candidate
		}
		candidate = fmt.Sprintf("%s-%d", id, n)
	}
}

// makeFolder creates a folder of results. Other users may read it unless the umask forbids that, because one user may
// fetch a run and another one merge it.
func makeFolder(path string) error {
	return os.MkdirAll(path, 0o755) // #nosec G301 -- see above
}

// CheckFolder returns an error if a run cannot create its folder at path, or write to it. It leaves no folder behind.
func CheckFolder(path string) error {
	existing := path
	for {
		_, err := os.Stat(existing)
		parent := filepath.Dir(existing)
		if !errors.Is(err, fs.ErrNotExist) || parent == existing {
			break
		}
		existing = parent
	}
	probe, err := os.MkdirTemp(existing, ".soak-")
	if err == nil {
		return os.Remove(probe)
	}
	var failed *fs.PathError
	if errors.As(err, &failed) {
		failed.Path = path
	}
	return folderError(err)
}

func folderError(err error) error {
	return fmt.Errorf("make the results folder: %w; choose another folder with --out", err)
}

// Create creates the folder of a new run, and sets the link `latest` to it, unless the user has a file of that name.
func Create(out, testid string) (Dir, error) {
	d := Dir(filepath.Join(out, testid))
	err := makeFolder(out)
	if err == nil {
		err = os.Mkdir(string(d), 0o755) // #nosec G301 -- see makeFolder; only one of two simultaneous runs can create it
	}
	if errors.Is(err, fs.ErrExist) {
		return "", existsError(d)
	}
	if err == nil {
		err = makeFolder(d.Path(ShardsDir))
	}
	if err != nil {
		return "", folderError(err)
	}
	latest := filepath.Join(out, "latest")
	if info, err := os.Lstat(latest); err == nil && info.Mode()&fs.ModeSymlink == 0 {
		return d, nil // a file of the user is kept
	}
	_ = os.Remove(latest)
	_ = os.Symlink(testid, latest) // optional: the file system may not support links
	return d, nil
}

// Discard removes the folder of a run that has not started, and the link `latest` to it. It keeps a folder with more
// than the manifest, such as logs of a target that did not start.
func (d Dir) Discard() {
	entries, err := os.ReadDir(string(d))
	isOther := func(e fs.DirEntry) bool { return e.Name() != ManifestFile && e.Name() != ShardsDir }
	if err != nil || slices.ContainsFunc(entries, isOther) || os.Remove(d.Path(ShardsDir)) != nil { // fails if there are shards
		return
	}
	_ = os.Remove(d.Path(ManifestFile))
	_ = os.Remove(string(d))
	latest := filepath.Join(filepath.Dir(string(d)), "latest")
	if to, err := os.Readlink(latest); err == nil && to == filepath.Base(string(d)) {
		_ = os.Remove(latest)
	}
}

// An existsError reports that the folder exists already. It matches fs.ErrExist.
type existsError Dir

func (e existsError) Error() string {
	return string(e) + " exists already; choose another --testid, or remove it"
}

func (existsError) Is(target error) bool { return target == fs.ErrExist }

// WriteJSON stores v as indented JSON.
func (d Dir) WriteJSON(name string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return d.Write(name, func(w io.Writer) error {
		_, err := w.Write(append(b, '\n'))
		return err
	})
}

// Write stores a text file atomically. It escapes control characters, which may come from services, shards and hosts.
func (d Dir) Write(name string, fill func(io.Writer) error) error {
	return store.Folder(d).Write(name, func(w io.Writer) error { return fill(format.NewEscaper(w)) })
}

func (d Dir) readJSON(name string, v any) (exists bool, err error) {
	err = safefile.JSON(d.Path(name), safefile.Document, v)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err //nolint:wrapcheck // names the file
	}
	return true, nil
}

// Relative returns the path relative to the working directory if the folder is below it, else the unchanged path.
func (d Dir) Relative() string {
	wd, err := os.Getwd()
	if err != nil {
		return string(d)
	}
	rel, err := filepath.Rel(wd, string(d))
	if err != nil || strings.HasPrefix(rel, "..") {
		return string(d)
	}
	return rel
}
