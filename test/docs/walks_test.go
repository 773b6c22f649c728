package docs

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
