// Command generate writes the files that are generated from package plan: docs/reference/settings.md, the plan in
// load-tests/types/soak.d.ts, and load-tests/lib/plan.js. Its argument is the root of the repository.
package main

import (
	"cmp"
	"embed"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"

	"github.com/sse-soak/sse-soak/internal/plan"
)

//go:embed templates
var templates embed.FS

// endMarkers maps each file to the text that follows its generated part, which begins with the first line of the
// template. If the text is empty, the whole file is generated.
var endMarkers = map[string]string{
	"docs/reference/settings.md": "", "load-tests/types/soak.d.ts": "  }\n", "load-tests/lib/plan.js": "",
}

// defaultPattern matches the default that `soak run` chooses, at the end of a help text.
var defaultPattern = regexp.MustCompile(` \(default:? "?(.*?)"?\)$`)

var functions = template.FuncMap{
	"name":    func(doc string) string { return strings.TrimSuffix(path.Base(doc), ".md") },
	"link":    func(doc string) string { return "../" + strings.TrimPrefix(doc, "docs/") },
	"help":    func(s plan.Setting) string { return defaultPattern.ReplaceAllString(s.Help, "") },
	"default": defaultText,
	"scriptHelp": func(s plan.Setting) string {
		return cmp.Or(s.ScriptHelp, defaultPattern.ReplaceAllString(s.Help, ". Default, also for 0: $1"))
	},
	"property": func(s plan.Setting) string { name, _ := s.Property(); return name },
	"typescript": func(kind string) string {
		return map[string]string{"bool": "boolean", "string": "string", "int": "number", "float64": "number"}[kind]
	},
}

// defaultText returns the default of a setting: the text in its help, or its value.
func defaultText(s plan.Setting) string {
	if found := defaultPattern.FindStringSubmatch(s.Help); found != nil {
		return found[1]
	}
	return s.String()
}

func main() {
	for file := range endMarkers {
		text, err := generate(os.Args[1], file)
		if err == nil {
			err = os.WriteFile(filepath.Join(os.Args[1], file), []byte(text), 0o644) // #nosec G306 G703 -- a source file
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func allSettings() []plan.Setting {
	p, l := plan.Default(), plan.DefaultLocal()
	p.ConnectionsPerVU = 0 // `soak run` chooses the number
	return append(p.Settings(), l.Settings()...)
}

// serviceNames returns the names of the service descriptions for plan.js, because a k6 script cannot list a folder.
func serviceNames(root string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(root, "load-tests", "services", "*.js"))
	for i, file := range files {
		files[i] = strings.TrimSuffix(filepath.Base(file), ".js")
	}
	return files, err
}

// generate returns the new content of a file of endMarkers. It keeps the text outside the generated part.
func generate(root, file string) (string, error) {
	t, err := template.New(path.Base(file)+".tmpl").Funcs(functions).ParseFS(templates, "templates/*.tmpl")
	if err != nil {
		return "", err
	}
	services, err := serviceNames(root)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	if err := t.Execute(&text, map[string]any{"Settings": allSettings(), "DefaultConnections": plan.DefaultConnections, "DisconnectLead": plan.DisconnectLead, "Services": services}); err != nil {
		return "", err
	}
	if endMarkers[file] == "" {
		return text.String(), nil
	}
	old, err := os.ReadFile(filepath.Join(root, file)) // #nosec G304 G703 -- a source file
	if err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(text.String(), "\n")
	head, body, hasStart := strings.Cut(string(old), first+"\n")
	_, tail, hasEnd := strings.Cut(body, endMarkers[file])
	if !hasStart || !hasEnd {
		return "", fmt.Errorf("update %s: the settings must be between %q and %q", file, first, endMarkers[file])
	}
	return head + text.String() + endMarkers[file] + tail, nil
}
