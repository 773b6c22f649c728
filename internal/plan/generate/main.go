// Command generate writes what repeats the table of settings outside of Go: the table in the README, the
// plan of load-tests/types/soak.d.ts and load-tests/lib/plan.js. Its argument is the root of the repository.
package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"

	"github.com/sse-soak/sse-soak/internal/plan"
)

func main() {
	files, err := files(os.Args[1])
	for name, text := range files {
		err = cmp.Or(err, os.WriteFile(filepath.Join(os.Args[1], name), []byte(text), 0o644))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// files are the generated files by name; of two only a part is generated, between two marks.
func files(root string) (map[string]string, error) {
	readme, err := replace(root, "README.md", "<!-- settings: `go generate ./internal/plan` -->\n", "<!-- end of settings -->", markdown())
	if err != nil {
		return nil, err
	}
	types, err := replace(root, "load-tests/types/soak.d.ts", "    // Settings: `go generate ./internal/plan`\n", "    // End of settings", declarations())
	if err != nil {
		return nil, err
	}
	return map[string]string{"README.md": readme, "load-tests/types/soak.d.ts": types, "load-tests/lib/plan.js": script()}, nil
}

// replace puts text between two marks of a file.
func replace(root, name, from, to, text string) (string, error) {
	old, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		return "", err
	}
	head, rest, begins := strings.Cut(string(old), from)
	_, tail, ends := strings.Cut(rest, to)
	if !begins || !ends {
		return "", fmt.Errorf("%s has no %q and %q around the settings", name, strings.TrimSpace(from), to)
	}
	return head + from + text + to + tail, nil
}

func all() []plan.Setting {
	p, l := plan.Default(), plan.DefaultLocal()
	p.ConnectionsPerVU = 0 // `soak run` chooses it
	return append(p.Settings(), l.Settings()...)
}

// chosen is the end of a help that says what `soak run` chooses.
var chosen = regexp.MustCompile(` \(default:? "?(.*?)"?\)$`)

// markdown is the table of the README.
func markdown() string {
	out := "| variable (flag of `bin/soak run`) | default | |\n|---|---|---|\n"
	for _, s := range all() {
		if s.Help == "" {
			continue
		}
		help, initial := s.Help, s.String()
		if found := chosen.FindStringSubmatch(help); found != nil {
			help, initial = strings.TrimSuffix(help, found[0]), found[1]
		}
		if s.Doc != "" {
			help += fmt.Sprintf(" ([%s](%s))", strings.TrimSuffix(filepath.Base(s.Doc), ".md"), s.Doc)
		}
		out += fmt.Sprintf("| `%s` | %s | %s |\n", s.Name, initial, help)
	}
	return out
}

// declarations are the properties of the plan that a script states.
func declarations() (out string) {
	for _, s := range all() {
		if s.Script == "" {
			continue
		}
		kind := map[string]string{"int": "number", "float64": "number", "bool": "boolean", "string": "string"}[s.Type()]
		help := cmp.Or(s.States, chosen.ReplaceAllString(s.Help, ". Left out or 0: $1"))
		out += fmt.Sprintf("    /** `%s`: %s. */\n    %s: %s;\n", s.Name, help, s.Script, kind)
	}
	return out
}

// script is load-tests/lib/plan.js.
func script() string {
	out := "// @ts-check\n// Code generated from internal/plan/table.go by `go generate ./internal/plan`. DO NOT EDIT.\n"
	for _, c := range plan.Constants() {
		out += fmt.Sprintf("\n/** %s */\nexport const %s = %v;\n", c.Is, c.Name, c.Value)
	}
	out += `
/**
 * What a script states of the plan (` + "`Plan`" + ` of k6/x/soak): the variable of each property, its type in Go, what it is where the
 * variable is not set (with k6 alone, as ` + "`soak run`" + ` sets them all), and the bounds of any other value.
 */
export const SETTINGS = Object.freeze({
`
	for _, s := range all() {
		if s.Script == "" {
			continue
		}
		row, err := json.Marshal(struct {
			Name      string  `json:"name"`
			Type      string  `json:"type"`
			Otherwise any     `json:"otherwise"`
			Min       float64 `json:"min,omitempty"`
			Max       float64 `json:"max,omitempty"`
			Must      string  `json:"must,omitempty"`
		}{s.Name, s.Type(), cmp.Or(s.Alone, reflect.ValueOf(s.Value).Elem().Interface()), s.Min, s.Max, s.Must})
		if err != nil {
			panic(err) // no value of a setting is one that JSON has not
		}
		out += fmt.Sprintf("  %s: %s,\n", strings.TrimSuffix(s.Script, "?"), row)
	}
	return out + "});\n"
}
