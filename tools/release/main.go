// Command release builds a release from the working tree and writes it to a folder (dist/ by default). The release has
// an archive and a bill of materials for each platform, an image for Linux, and the checksums of all files. The same
// tree and the same version of Go produce the same bytes.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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
	files := map[platform][]file{}
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
		files[p] = slices.Concat(programs, licenses)
		if err := r.archive(p, programs, slices.Concat(licenses, common)); err != nil {
			return err
		}
	}
	if err := r.image(files); err != nil {
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

// A platform is an operating system and an architecture, as Go names them.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// platforms are the platforms of a release. The backend needs Unix, so the release has no backend for Windows.
var platforms = []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}}

func platformNames() string {
	var names []string
	for _, p := range platforms {
		names = append(names, p.String())
	}
	return strings.Join(names, ",")
}

func parsePlatforms(list string) (out []platform, err error) {
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(platforms, func(p platform) bool { return p.String() == name })
		if i < 0 {
			return nil, fmt.Errorf("unknown platform %q; use one of %s", name, platformNames())
		}
		out = append(out, platforms[i])
	}
	return out, nil
}

func (p platform) programs() []string {
	if p.os == "windows" {
		return []string{"./cmd/soak", "./cmd/k6"}
	}
	return []string{"./cmd/soak", "./cmd/k6", "./backend"}
}

// environment returns the environment of this process with fixed build variables.
func (p platform) environment() []string {
	return append(os.Environ(), "GOOS="+p.os, "GOARCH="+p.arch, "CGO_ENABLED=0", "GOFLAGS=", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0")
}

// build builds programs for a platform. A program that exists in work is not built again.
func (r *release) build(work string, p platform, programs ...string) (out []file, err error) {
	folder := filepath.Join(work, p.os+"-"+p.arch) + string(filepath.Separator)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("build for %s: %w", p, err)
	}
	// Programs are built one at a time, because linking k6 uses 1.3 GB. Each keeps its build ID, a hash of its content,
	// from which the linker derives the UUID that macOS requires.
	for _, program := range programs {
		name := filepath.Base(program)
		if p.os == "windows" {
			name += ".exe"
		}
		binary := file{name: name, path: filepath.Join(folder, name), mode: 0o755}
		out = append(out, binary)
		if _, err := os.Stat(binary.path); err == nil {
			continue
		}
		flags := "-s -w -X main.version=" + r.version + " -X main.release=" + r.version + " -X main.revision=" + r.commit
		build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", folder, program)
		build.Dir, build.Env, build.Stderr = r.root, p.environment(), os.Stderr
		if err := build.Run(); err != nil {
			return nil, fmt.Errorf("build %s for %s: %w", program, p, err)
		}
	}
	return out, nil
}

// commonFiles returns the documents, shell completions and manual pages, which every archive contains.
func (r *release) commonFiles(work string) ([]file, error) {
	host := platform{runtime.GOOS, runtime.GOARCH}
	programs, err := r.build(work, host, "./cmd/soak")
	if err != nil {
		return nil, err
	}
	soak := programs[0].path
	files := []file{
		{name: "README.md", path: filepath.Join(r.root, "README.md")},
		{name: "CHANGELOG.md", path: filepath.Join(r.root, "CHANGELOG.md")},
		{name: "getting-started.md", path: filepath.Join(r.root, "docs", "getting-started.md")},
	}
	for shell, name := range map[string]string{"bash": "soak.bash", "zsh": "_soak", "fish": "soak.fish", "powershell": "soak.ps1"} {
		text, err := exec.Command(soak, "completion", shell).Output()
		if err != nil {
			return nil, fmt.Errorf("write the completion for %s: %w", shell, err)
		}
		files = append(files, file{name: "completions/" + name, text: text})
	}
	manual := filepath.Join(work, "man")
	if err := exec.Command(soak, "man", manual).Run(); err != nil {
		return nil, fmt.Errorf("write the manual: %w", err)
	}
	pages, err := os.ReadDir(manual)
	if err != nil {
		return nil, fmt.Errorf("write the manual: %w", err)
	}
	for _, page := range pages {
		files = append(files, file{name: "man/man1/" + page.Name(), path: filepath.Join(manual, page.Name())})
	}
	return files, nil
}
