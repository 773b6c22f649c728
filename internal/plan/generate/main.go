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

// A part is what is generated of a file: the text between two others.
type part struct {
	file, before, behind string
	text                 func() string
}

var parts = []part{
	{"README.md", "| variable (flag of `bin/soak run`) | default | |\n|---|---|---|\n", "\n`BACKEND_TOKEN`", readme},
	{"load-tests/types/soak.d.ts", "    // Generated: `go generate ./internal/plan`\n", "  }\n", declarations},
	{"load-tests/lib/plan.js", "// Generated: `go generate ./internal/plan`\n", "// End of what is generated.\n", script},
}

func main() {
	for _, p := range parts {
		file := filepath.Join(os.Args[1], p.file)
		text, err := p.in(file)
		if err == nil {
			err = os.WriteFile(file, []byte(text), 0o644)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// in is the file with the part in it.
func (p part) in(file string) (string, error) {
	old, err := os.ReadFile(file)
	head, rest, begins := strings.Cut(string(old), p.before)
	_, tail, ends := strings.Cut(rest, p.behind)
	if err == nil && !(begins && ends) {
		err = fmt.Errorf("%s has no %q and %q around the settings", file, p.before, p.behind)
	}
	return head + p.before + p.text() + p.behind + tail, err
}

func all() []plan.Setting {
	p, l := plan.Default(), plan.DefaultLocal()
	p.ConnectionsPerVU = 0 // `soak run` chooses it
	return append(p.Settings(), l.Settings()...)
}

// chosen is the end of a help that says what `soak run` chooses.
var chosen = regexp.MustCompile(` \(default:? "?(.*?)"?\)$`)

func readme() (out string) {
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

// script is what load-tests/lib/plan.js exports.
func script() (out string) {
	for _, c := range plan.Constants() {
		out += fmt.Sprintf("\n/** %s */\nexport const %s = %v;\n", c.Is, c.Name, c.Value)
	}
	out += "\nexport const SETTINGS = Object.freeze({\n"
	for _, s := range all() {
		if s.Script == "" {
			continue
		}
		text, err := json.Marshal(struct {
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
		out += fmt.Sprintf("  %s: %s,\n", strings.TrimSuffix(s.Script, "?"), text)
	}
	return out + "});\n"
}
