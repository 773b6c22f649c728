// Command generate writes what repeats the table of settings outside of Go: the table in the README, the
// plan of load-tests/types/soak.d.ts and load-tests/lib/plan.js. Its argument is the root of the repository.
package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sse-soak/sse-soak/internal/plan"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generate FOLDER")
		os.Exit(64)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(root string) error {
	files, err := files(root)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := os.WriteFile(filepath.Join(root, name), []byte(files[name]), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// files are the generated files by name; of two only a part is generated, between two marks.
func files(root string) (map[string]string, error) {
	readme, err := replace(root, "README.md", "<!-- settings: `go generate ./internal/plan` -->\n", "<!-- end of settings -->", markdown())
	if err != nil {
		return nil, err
	}
	types, err := replace(root, "load-tests/types/soak.d.ts", "    // Settings: `go generate ./internal/plan`\n", "    // End of settings", declarations())
	return map[string]string{"README.md": readme, "load-tests/types/soak.d.ts": types, "load-tests/lib/plan.js": script()}, err
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
	return append(p.Settings(), l.Settings()...)
}

var chosen = regexp.MustCompile(` \(default:? "?(.*?)"?\)$`)

// markdown is the table of the README.
func markdown() string {
	out := "| variable (flag of `bin/soak run`) | default | |\n|---|---|---|\n"
	for _, s := range all() {
		if s.Help == "" {
			continue
		}
		help, initial := s.Help, ""
		if s.Default != nil {
			initial = s.String()
		} else if s.Type() != "string" {
			initial = "0"
		}
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
		help := cmp.Or(s.States, chosen.ReplaceAllString(s.Help, ". Left out or 0: $1"))
		kind := map[string]string{"int": "number", "float64": "number", "bool": "boolean"}
		out += fmt.Sprintf("    /** `%s`: %s. */\n    %s: %s;\n", s.Name, help, s.Script, cmp.Or(kind[s.Type()], s.Type()))
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
 * What a script states of the plan (` + "`Plan`" + ` of k6/x/soak): the variable of each property, its kind, what it is where the
 * variable is not set (with k6 alone, as ` + "`soak run`" + ` sets them all), and the bounds of any other value.
 */
export const SETTINGS = Object.freeze({
`
	for _, s := range all() {
		if s.Script == "" {
			continue
		}
		kind := map[string]string{"int": "whole", "float64": "number", "bool": "switch", "string": "text"}[s.Type()]
		out += fmt.Sprintf("  %s: { name: '%s', kind: '%s', otherwise: %s", strings.TrimSuffix(s.Script, "?"), s.Name, kind, literal(alone(s)))
		if s.Must != "" {
			out += fmt.Sprintf(", min: %s, max: %s, must: %s", number(s.Min), most(s.Max), literal(s.Must))
		}
		out += " },\n"
	}
	return out + "});\n"
}

// alone is the value with k6 alone.
func alone(s plan.Setting) any {
	if s.Alone != nil {
		return s.Alone
	}
	if s.Default != nil {
		return s.Default
	}
	return map[string]any{"int": 0, "float64": 0, "bool": false, "string": ""}[s.Type()]
}

func literal(v any) string {
	if text, ok := v.(string); ok {
		return "'" + strings.ReplaceAll(text, "'", "\\'") + "'"
	}
	return fmt.Sprint(v)
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

func most(v float64) string {
	if v == 0 {
		return "Infinity"
	}
	return number(v)
}
