package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// A platform is an operating system and an architecture, as Go names them.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// platforms are the platforms of a release. On Windows k6 runs, and soak merges shards; backend needs unix.
var platforms = []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}}

func all() string {
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
			return nil, fmt.Errorf("there is no release for %q: name some of %s", name, all())
		}
		out = append(out, platforms[i])
	}
	return out, nil
}

// programs returns the packages of the programs of a platform.
func (p platform) programs() []string {
	if p.os == "windows" {
		return []string{"./cmd/soak", "./cmd/k6"}
	}
	return []string{"./cmd/soak", "./cmd/k6", "./backend"}
}

// environment returns the environment of Go for a build of the platform, independent of other variables here.
func (p platform) environment() []string {
	return append(os.Environ(), "GOOS="+p.os, "GOARCH="+p.arch, "CGO_ENABLED=0", "GOFLAGS=", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0")
}

// build makes the programs for a platform.
func (r *release) build(work string, p platform, programs ...string) (out []file, err error) {
	folder := filepath.Join(work, p.os+"-"+p.arch) + string(filepath.Separator)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("build for %s: %w", p, err)
	}
	// One after the other, because linking k6 uses 1.3 GB. The build ID stays: it is a hash of the program, and macOS
	// requires a UUID, which the linker derives from it.
	for _, program := range programs {
		flags := "-s -w -X main.version=" + r.version + " -X main.linked=" + r.version + " -X main.revision=" + r.commit
		build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", folder, program)
		build.Dir, build.Env, build.Stderr = r.root, p.environment(), os.Stderr
		if err := build.Run(); err != nil {
			return nil, fmt.Errorf("build %s for %s: %w", program, p, err)
		}
		name := filepath.Base(program)
		if p.os == "windows" {
			name += ".exe"
		}
		out = append(out, file{name: name, from: filepath.Join(folder, name), mode: 0o755})
	}
	return out, nil
}

// commonFiles makes the files of every archive other than the programs and their licences: completions and the
// manual.
func (r *release) commonFiles(work string) ([]file, error) {
	host := platform{runtime.GOOS, runtime.GOARCH}
	extra, err := r.build(filepath.Join(work, "own"), host, "./cmd/soak")
	if err != nil {
		return nil, err
	}
	soak := extra[0].from
	files := []file{
		{name: "README.md", from: filepath.Join(r.root, "README.md")},
		{name: "CHANGELOG.md", from: filepath.Join(r.root, "CHANGELOG.md")},
		{name: "getting-started.md", from: filepath.Join(r.root, "docs", "getting-started.md")},
	}
	for shell, name := range map[string]string{"bash": "soak.bash", "zsh": "_soak", "fish": "soak.fish", "powershell": "soak.ps1"} {
		text, err := exec.Command(soak, "completion", shell).Output()
		if err != nil {
			return nil, fmt.Errorf("make the completion for %s: %w", shell, err)
		}
		files = append(files, file{name: "completions/" + name, text: text})
	}
	manual := filepath.Join(work, "man")
	if err := exec.Command(soak, "man", manual).Run(); err != nil {
		return nil, fmt.Errorf("make the manual: %w", err)
	}
	pages, err := os.ReadDir(manual)
	if err != nil {
		return nil, fmt.Errorf("make the manual: %w", err)
	}
	for _, page := range pages {
		files = append(files, file{name: "man/man1/" + page.Name(), from: filepath.Join(manual, page.Name())})
	}
	return files, nil
}
