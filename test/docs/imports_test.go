package docs

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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
