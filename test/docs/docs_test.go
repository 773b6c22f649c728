// Package docs checks the names in Markdown and in the texts of the programs: files, headings, make targets, tests,
// environment variables and flags.
package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A tree is the set of files of the repository, by slash-separated path.
type tree struct {
	files   map[string]bool
	ends    map[string]bool     // suffixes of the paths of files: a/b.go, b.go
	tests   map[string][]string // names of test functions, with the files that have them
	targets map[string]bool     // of the Makefile
	words   map[string]bool     // of all files except Markdown and JSON: NAME_OF_A_VARIABLE, and "name-of-a-flag"
}

const root = "../.."

// generatedFolders are written by programs. A clone does not have the files in them that the docs name.
var generatedFolders = []string{".git", "node_modules", "bin", "dist", "results", "certs"}

// foreignNames matches names that look like files of this repository, but belong to k6, to the operator or to the user.
var foreignNames = regexp.MustCompile(`^(k6/x/.*|bundle\.yaml|soak\.yaml|TestRun|infra/terraform/terraform\.tfvars|grafana/grafana|nginx/nginx-prometheus-exporter)$`)

var (
	testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark|Example)\w*)\(`)
	makeTarget   = regexp.MustCompile(`(?m)^([a-z0-9-]+):`)
	sourceWord   = regexp.MustCompile(`[A-Z][A-Z0-9_]{3,}|"[a-z0-9-]+"`)
)

// repository is the tree of this clone, which the first test reads.
var repository struct {
	sync.Once
	tree
}

func readTree(t *testing.T) tree {
	t.Helper()
	repository.Do(func() { repository.tree = newTree(t) })
	return repository.tree
}

func newTree(t *testing.T) tree {
	t.Helper()
	out := tree{map[string]bool{}, map[string]bool{}, map[string][]string{}, map[string]bool{}, map[string]bool{}}
	require.NoError(t, fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && slices.Contains(generatedFolders, name) {
			return fs.SkipDir
		}
		out.files[name] = true
		if d.IsDir() {
			return nil
		}
		for end, ok := name, true; ok; _, end, ok = strings.Cut(end, "/") {
			out.ends[end] = true
		}
		if info, err := d.Info(); path.Ext(name) != ".md" && path.Ext(name) != ".json" && err == nil && info.Mode().IsRegular() && info.Size() < 1<<20 {
			for _, w := range sourceWord.FindAllString(read(t, name), -1) {
				out.words[strings.Trim(w, `"`)] = true
			}
		}
		if strings.HasSuffix(name, "_test.go") {
			for _, f := range testFunction.FindAllStringSubmatch(read(t, name), -1) {
				out.tests[f[1]] = append(out.tests[f[1]], name)
			}
		}
		return nil
	}))
	for _, target := range makeTarget.FindAllStringSubmatch(read(t, "Makefile"), -1) {
		out.targets[target[1]] = true
	}
	return out
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return string(b)
}

var (
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notInSlug = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	pageCode  = regexp.MustCompile("`[^`\n]+`|(?m)^    \\S.*$") // in Markdown
	word      = regexp.MustCompile(`[\w.@/-]+`)
	fileName  = regexp.MustCompile(`^[\w.-]+\.(go|js|ts|tmpl|tf|sh|yaml)$`)
	testName  = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w*`)
	makeCall  = regexp.MustCompile(`\bmake ([a-z][a-z0-9-]+)`)
	variable  = regexp.MustCompile(`\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b`)
	flag      = regexp.MustCompile(` --([a-z][a-z0-9-]+)`)
	pageName  = regexp.MustCompile(`(?:^|[\s(\x60"])([\w.][\w./-]*\.md)\b`)
	textCode  = regexp.MustCompile("`[^`\n]+`|^make [a-z0-9-]+$") // in texts of programs
)

// slug returns the anchor of a heading on GitHub.
func slug(heading string) string {
	return strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

// missingNames lists the names on a page that do not exist in the repository.
func (r tree) missingNames(t *testing.T, page string) (out []string) {
	t.Helper()
	text := read(t, page)
	missing := func(kind, name string) { out = append(out, fmt.Sprintf("%s: no %s %s", page, kind, name)) }
	for _, l := range link.FindAllStringSubmatch(text, -1) {
		to, anchor, _ := strings.Cut(l[1], "#")
		if strings.Contains(to, "://") {
			continue
		}
		file := page
		if to != "" {
			file = path.Join(path.Dir(page), to)
		}
		switch {
		case !r.files[file]:
			missing("file", l[1])
		case anchor != "" && !slices.ContainsFunc(heading.FindAllStringSubmatch(read(t, file), -1), func(h []string) bool { return slug(h[1]) == anchor }):
			missing("heading", l[1])
		}
	}
	for _, span := range pageCode.FindAllString(text, -1) {
		out = append(out, r.missingPaths(page, span)...)
	}
	return append(out, r.missingPages(page, text)...)
}

// missingPages lists the Markdown files in a text that do not exist in the repository.
func (r tree) missingPages(from, text string) (out []string) {
	for _, found := range pageName.FindAllStringSubmatch(text, -1) {
		if name := found[1]; !r.ends[strings.TrimPrefix(name, "./")] && !r.files[path.Join(path.Dir(from), name)] {
			out = append(out, fmt.Sprintf("%s: no page %s", from, name))
		}
	}
	return out
}

// missingPaths lists the names in a span of code that do not exist in the repository.
func (r tree) missingPaths(page, span string) (out []string) {
	missing := func(kind, name string) { out = append(out, fmt.Sprintf("%s: no %s %s", page, kind, name)) }
	for _, w := range word.FindAllString(span, -1) {
		if w = strings.TrimRight(w, "/."); !r.has(path.Dir(page), w) {
			missing("file", w)
		}
	}
	for _, name := range testName.FindAllString(span, -1) {
		if r.tests[name] == nil && !foreignNames.MatchString(name) {
			missing("test", name)
		}
	}
	for _, name := range variable.FindAllString(span, -1) {
		if !r.words[name] {
			missing("variable", name)
		}
	}
	for _, name := range flag.FindAllStringSubmatch(span, -1) {
		setting := strings.ToUpper(strings.ReplaceAll(name[1], "-", "_"))
		if strings.Contains(span, "soak ") && !r.words[name[1]] && !r.words[setting] && !r.words[strings.ToLower(setting)] {
			missing("flag", name[0])
		}
	}
	for _, name := range makeCall.FindAllStringSubmatch(span, -1) {
		if !r.targets[name[1]] {
			missing("make target", name[1])
		}
	}
	return out
}

// has reports whether a path exists, relative to the root of the repository or to the folder of the page. A word is a
// path if it begins with ./ or a folder of the root, or ends in the name of a source file. has returns true for all
// other words, and for names that are foreign or in a generated folder.
func (r tree) has(folder, word string) bool {
	first, _, nested := strings.Cut(strings.TrimPrefix(word, "./"), "/")
	switch {
	case foreignNames.MatchString(word) || strings.HasPrefix(word, "//") || slices.Contains(generatedFolders, first):
		return true
	case strings.HasPrefix(word, "./") || nested && r.files[first]:
		word = strings.TrimSuffix(word, "/...")
		return r.files[path.Clean(word)] || r.files[path.Join(folder, word)]
	case fileName.MatchString(path.Base(word)):
		return r.ends[word]
	}
	return true
}

func TestMarkdownNamesExist(t *testing.T) {
	t.Parallel()
	all := readTree(t)
	var missing []string
	for name := range all.files {
		if strings.HasSuffix(name, ".md") && !strings.Contains(name, "testdata/") {
			missing = append(missing, all.missingNames(t, name)...)
		}
	}
	slices.Sort(missing)
	require.Empty(t, strings.Join(missing, "\n"))
}

func TestDocumentationIsShort(t *testing.T) {
	t.Parallel()
	pages := 0
	for name := range readTree(t).files {
		if folder := path.Dir(name); path.Ext(name) == ".md" && (folder == "docs" || folder == "docs/reference") {
			pages++
		}
	}
	require.LessOrEqual(t, pages, 16)
	require.LessOrEqual(t, strings.Count(read(t, "README.md"), "\n"), 150)
}

// The names in the texts of programs exist, such as `make up` and docs/aws.md.
func TestNamesInProgramTextsExist(t *testing.T) {
	t.Parallel()
	all := readTree(t)
	var missing []string
	for name := range all.files {
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || strings.Contains(name, "testdata/") {
			continue
		}
		literals(t, name, func(_ token.Position, text string) {
			for _, span := range textCode.FindAllString(text, -1) {
				missing = append(missing, all.missingPaths(name, span)...)
			}
			missing = append(missing, all.missingPages(name, text)...)
		})
	}
	slices.Sort(missing)
	require.Empty(t, strings.Join(missing, "\n"))
}

// literals calls use with each string literal of a Go file, except struct tags.
func literals(t *testing.T, name string, use func(at token.Position, text string)) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, read(t, name), parser.SkipObjectResolution)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			n.Tag = nil
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				text, err := strconv.Unquote(n.Value)
				require.NoError(t, err)
				use(files.Position(n.Pos()), text)
			}
		}
		return true
	})
}

func TestAnchors(t *testing.T) {
	t.Parallel()
	require.Equal(t, "one-test", slug("One test"))
	require.Equal(t, "to-add-", slug("To add …"))
	require.Equal(t, "what-is-here-and-why", slug("What is here, and `why`"))
}

func TestMissingNamesAreFound(t *testing.T) {
	t.Parallel()
	all := tree{files: map[string]bool{".": true, "docs": true, "docs/a.md": true}, ends: map[string]bool{"a.go": true, "b/a.go": true}}
	for word, want := range map[string]bool{
		"docs/a.md": true, "docs/b.md": false, "./docs": true, "./docs/...": true, "./b": false, "a.go": true, "b.go": false, "b/a.go": true, "c/a.go": false, "k6/x/sse": true,
		"s3://docs": true, "results/latest": true, "text/html": true,
	} {
		require.Equal(t, want, all.has("docs", word), word)
	}
	all.ends["b.md"] = true
	require.Equal(t, []string{"docs/a.md: no page DESIGN.md", "docs/a.md: no page c.md"}, all.missingPages("docs/a.md", "See DESIGN.md, ./b.md, a.md, (c.md) and https://host/d.md."))
	require.Equal(t, []string{"x.go: no variable NO_SUCH", "x.go: no make target stack"}, all.missingPaths("x.go", "`NO_SUCH=1 make stack`"))
}

const module = "github.com/sse-soak/sse-soak/"

// importRow matches a row of the table in docs/architecture.md: folder, content, imports.
var importRow = regexp.MustCompile("(?m)^\\| `([a-z0-9/-]+)/` \\| [^|]+ \\| ([^|`]+) \\|$")

// The table lists the imports of each package, and no package imports one above it. Packages outside the table, such
// as the parser of event streams and nginx, may be imported by any package.
func TestImportsMatchTheArchitecture(t *testing.T) {
	t.Parallel()
	rows := importRow.FindAllStringSubmatch(read(t, "docs/architecture.md"), -1)
	var folders []string
	for _, row := range rows {
		folders = append(folders, row[1])
	}
	list := exec.Command("go", "list", "-f", `{{.ImportPath}}{{range .Imports}} {{.}}{{end}}`, "./cmd/soak", "./internal/...", "./k6/...")
	list.Dir = root
	out, err := list.Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(out)) {
		paths := strings.Fields(strings.ReplaceAll(line, module, ""))
		row := slices.Index(folders, paths[0])
		if row < 0 {
			require.Contains(t, []string{"internal/plan/generate", "internal/sseclient/eventstream"}, paths[0], "the package must have a row")
			continue
		}
		imports := []string{}
		for _, path := range paths[1:] {
			if i := slices.Index(folders, path); i >= 0 {
				require.Greater(t, i, row, "%s must not import %s, which is above it", paths[0], path)
				imports = append(imports, path)
			}
		}
		columns := []string{}
		for _, name := range strings.Split(strings.TrimSpace(rows[row][2]), ", ") {
			if i := slices.IndexFunc(folders, func(f string) bool { return f == name || f == "internal/"+name }); i >= 0 {
				columns = append(columns, folders[i])
			}
		}
		require.ElementsMatch(t, imports, columns, "imports of %s in docs/architecture.md", paths[0])
	}
	require.Len(t, rows, len(strings.Split(strings.TrimSpace(string(out)), "\n"))-2, "each package must have exactly one row")
}

// walkRow matches a row of a walk in docs/architecture.md: number, file, functions, task.
var walkRow = regexp.MustCompile("(?m)^\\| (\\d+) \\| `([^`]+)` \\| ([^|]+) \\| [^|]+ \\|$")

// Each walk names few files, and each file declares the functions that the walk names.
func TestWalksNameFilesAndTheirFunctions(t *testing.T) {
	t.Parallel()
	page := read(t, "docs/architecture.md")
	for heading, maxFiles := range map[string]int{"From a message to the verdict": 15, "From a flag to a runner": 5} {
		_, section, found := strings.Cut(page, "\n## "+heading+"\n")
		require.True(t, found, "docs/architecture.md must have the heading %q", heading)
		section, _, _ = strings.Cut(section, "\n## ")
		rows := walkRow.FindAllStringSubmatch(section, -1)
		require.NotEmpty(t, rows, heading)
		require.LessOrEqual(t, len(rows), maxFiles, heading)
		for i, row := range rows {
			require.Equal(t, fmt.Sprint(i+1), row[1], "%s: %s", heading, row[2])
			source := read(t, row[2])
			for name := range strings.SplitSeq(row[3], ", ") {
				name = strings.Trim(name, "`")
				assert.Regexp(t, `(?m)^func (\([^)]*\) )?`+name+`\(`, source, "%s must declare %s", row[2], name)
			}
		}
	}
}
