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
		built := file{name: name, path: filepath.Join(folder, name), mode: 0o755}
		out = append(out, built)
		if _, err := os.Stat(built.path); err == nil {
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
