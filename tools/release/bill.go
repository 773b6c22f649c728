package main

import (
	"bytes"
	"cmp"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// modules returns the modules that the programs contain, sorted by path, and the version of Go.
func modules(programs []file) (deps []*debug.Module, compiler string, err error) {
	found := map[string]bool{}
	for _, program := range programs {
		info, err := buildinfo.ReadFile(program.path)
		if err != nil {
			return nil, "", fmt.Errorf("read the modules of %s: %w", program.name, err)
		}
		compiler = info.GoVersion
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			if !found[m.Path+"@"+m.Version] {
				found[m.Path+"@"+m.Version] = true
				deps = append(deps, m)
			}
		}
	}
	slices.SortFunc(deps, func(a, b *debug.Module) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Version, b.Version))
	})
	return deps, compiler, nil
}

// bill writes the bill of materials of the programs in CycloneDX format: their modules, the standard library of Go, and
// uPlot. The bill has no serial number, so that the same programs always have the same bill.
func (r *release) bill(file string, programs []file) error {
	deps, compiler, err := modules(programs)
	if err != nil {
		return err
	}
	parts := []cdx.Component{component("std", strings.TrimPrefix(compiler, "go"), "pkg:golang/std@", "")}
	for _, m := range deps {
		parts = append(parts, component(m.Path, m.Version, "pkg:golang/"+m.Path+"@", m.Sum))
	}
	chart, err := r.chart()
	if err != nil {
		return err
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Timestamp: r.time.Format(time.RFC3339), Component: &cdx.Component{
		BOMRef: "pkg:golang/" + module + "@" + r.version, Type: cdx.ComponentTypeApplication, Name: name, Version: r.version,
		PackageURL: "pkg:golang/" + module + "@" + r.version, Licenses: &cdx.Licenses{{License: &cdx.License{ID: license}}},
	}}
	parts = append(parts, chart)
	bom.Components = &parts
	out, err := os.Create(filepath.Join(r.out, file))
	if err == nil {
		err = errors.Join(cdx.NewBOMEncoder(out, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6), out.Close())
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}

// component returns a component with the package URL url+version. sum is Go's checksum of the module; "": none.
func component(name, version, url, sum string) cdx.Component {
	c := cdx.Component{BOMRef: url + version, Type: cdx.ComponentTypeLibrary, Name: name, Version: version, PackageURL: url + version}
	if raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(sum, "h1:")); err == nil && len(raw) > 0 {
		c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(raw)}}
	}
	return c
}

// chart returns the component for uPlot, which draws the charts of the report and is not a Go module.
func (r *release) chart() (c cdx.Component, err error) {
	text, err := os.ReadFile(filepath.Join(r.root, "package.json"))
	if err != nil {
		return c, fmt.Errorf("find the version of uPlot: %w", err)
	}
	var packageJSON struct {
		DevDependencies map[string]string `json:"devDependencies"`
	}
	if err := json.Unmarshal(text, &packageJSON); err != nil {
		return c, fmt.Errorf("read the version of uPlot in package.json: %w", err)
	}
	version := packageJSON.DevDependencies["uplot"]
	if version == "" {
		return c, errors.New("find the version of uPlot: package.json has no uplot in devDependencies")
	}
	return component("uplot", version, "pkg:npm/uplot@", ""), nil
}

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
