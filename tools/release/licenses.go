package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Module path and license of this project, and the module path of k6, which has the same license.
const (
	module  = "github.com/sse-soak/sse-soak"
	license = "AGPL-3.0-only"
	k6      = "go.k6.io/k6/v2"
)

var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|copyright|patents)([.-].*)?$`)

// licenses returns the license and the NOTICE of this repository, and the license texts of all modules in the programs.
// If the repository has no file LICENSE, licenses uses the copy in k6, which has the same license (see NOTICE).
func (r *release) licenses(p platform, programs []file) ([]file, error) {
	folders, err := r.sources(p)
	if err != nil {
		return nil, err
	}
	deps, _, err := modules(programs)
	if err != nil {
		return nil, err
	}
	text := filepath.Join(r.root, "LICENSE")
	var all bytes.Buffer
	for _, m := range deps {
		texts, err := textsIn(folders[m.Path])
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(text); m.Path == k6 && len(texts) > 0 && errors.Is(err, os.ErrNotExist) {
			text = texts[0]
		}
		fmt.Fprintf(&all, "%s\n%s %s\n", strings.Repeat("=", 80), m.Path, m.Version)
		if len(texts) == 0 { // code that buf.build generated
			fmt.Fprint(&all, "\nThe module has no license file.\n")
		}
		for _, path := range texts {
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, fmt.Errorf("read a license: %w", err)
			}
			fmt.Fprintf(&all, "\n%s\n", bytes.TrimSpace(text))
		}
	}
	return []file{{name: "LICENSE", path: text}, {name: "NOTICE", path: filepath.Join(r.root, "NOTICE")}, {name: "LICENSES-OF-OTHERS", text: all.Bytes()}}, nil
}

// sources returns the folders in which Go stores the modules of a platform's programs, by module path.
func (r *release) sources(p platform) (map[string]string, error) {
	list := exec.Command("go", append([]string{"list", "-deps", "-f", "{{with .Module}}{{.Path}} {{.Dir}}{{end}}"}, p.programs()...)...)
	list.Dir, list.Env = r.root, p.environment()
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list the modules for %s: %w", p, err)
	}
	folders := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if path, folder, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			folders[path] = folder
		}
	}
	return folders, nil
}

func textsIn(folder string) (out []string, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("find a license: %w", err)
	}
	for _, e := range entries {
		if !e.IsDir() && licenseFile.MatchString(e.Name()) && !strings.HasSuffix(e.Name(), ".go") {
			out = append(out, filepath.Join(folder, e.Name()))
		}
	}
	slices.Sort(out)
	return out, nil
}
