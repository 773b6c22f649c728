// Command release builds a release from the working tree and writes it to dist/. The release has an archive and a bill
// of materials for each platform, an image for Linux, and the checksums of all files. The same tree and the same
// version of Go produce the same bytes.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// name is the name of the project, and the prefix of the names of all release files except SHA256SUMS.
const name = "sse-soak"

// A release is the set of files of one version.
type release struct {
	root    string // folder of the repository
	out     string
	version string    // such as v1.2.3; without a tag, the commit
	commit  string    // "": unknown
	time    time.Time // SOURCE_DATE_EPOCH or the time of the commit; the modification time of all files
}

func main() {
	var platforms string
	r := release{}
	flag.StringVar(&r.root, "root", ".", "folder of the repository")
	flag.StringVar(&r.out, "out", "dist", "output folder; an earlier release in it is removed")
	flag.StringVar(&r.version, "version", "", "version (default: output of git describe)")
	flag.StringVar(&platforms, "platforms", platformNames(), "platforms to build for, separated by commas")
	flag.Parse()
	if err := r.make(platforms); err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

func (r *release) make(list string) (err error) {
	targets, err := parsePlatforms(list)
	if err == nil {
		err = r.identify()
	}
	if err == nil {
		r.out, err = filepath.Abs(r.out)
	}
	if err == nil {
		err = r.removeOld()
	}
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "release-*")
	if err != nil {
		return fmt.Errorf("create the build folder: %w", err)
	}
	defer os.RemoveAll(work)
	common, err := r.commonFiles(work)
	if err != nil {
		return err
	}
	built := map[platform][]file{}
	for _, p := range targets {
		fmt.Fprintf(os.Stderr, "release: %s %s\n", r.version, p)
		programs, err := r.build(work, p, p.programs()...)
		if err != nil {
			return err
		}
		licenses, err := r.licenses(p, programs)
		if err != nil {
			return err
		}
		built[p] = slices.Concat(programs, licenses)
		if err := r.archive(p, programs, slices.Concat(licenses, common)); err != nil {
			return err
		}
	}
	if err := r.image(built); err != nil {
		return err
	}
	return r.checksums()
}

// identify sets the version, commit and time of the release, and the variable SOURCE_DATE_EPOCH to that time.
func (r *release) identify() error {
	git := func(args ...string) string {
		out, _ := exec.Command("git", append([]string{"-C", r.root}, args...)...).Output() // empty in a tree without git
		return strings.TrimSpace(string(out))
	}
	r.version = cmp.Or(r.version, git("describe", "--tags", "--always", "--dirty", "--abbrev=12"))
	r.commit = git("rev-parse", "HEAD")
	epoch := cmp.Or(os.Getenv("SOURCE_DATE_EPOCH"), git("log", "-1", "--format=%ct"))
	if r.version == "" || epoch == "" {
		return fmt.Errorf("%s is not a git clone; set -version and SOURCE_DATE_EPOCH", r.root)
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH must be a number of seconds since 1970, got %q", epoch)
	}
	r.time = time.Unix(seconds, 0).UTC()
	return os.Setenv("SOURCE_DATE_EPOCH", epoch) // read by soak when it writes the manual
}

// bareVersion returns the version without its leading v, for the names of files and images.
func (r *release) bareVersion() string { return strings.TrimPrefix(r.version, "v") }

// removeOld removes an earlier release from the output folder, or creates the folder. Other files in it are an error.
func (r *release) removeOld() error {
	entries, err := os.ReadDir(r.out)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read %s: %w", r.out, err)
	}
	for _, e := range entries {
		if e.Name() != sums && !strings.HasPrefix(e.Name(), name+"_") {
			return fmt.Errorf("%s contains %s, which is not a file of a release; remove it, or set another folder with -out", r.out, e.Name())
		}
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(r.out, e.Name())); err != nil {
			return fmt.Errorf("remove the earlier release: %w", err)
		}
	}
	return os.MkdirAll(r.out, 0o755)
}
