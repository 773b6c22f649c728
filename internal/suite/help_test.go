package suite

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// The help of a setting has the default that is in the script.
func TestHelpSaysTheDefaultsOfTheScript(t *testing.T) {
	t.Parallel()
	said := regexp.MustCompile(`\(default: (-?\d+)(?:, smoke: (\d+))?\)`)
	for _, s := range []Suite{slowReaders, storm, vanish} {
		script, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, s.Script...)...))
		require.NoError(t, err)
		for _, setting := range s.Settings {
			if setting.Name == "GAUGE" {
				continue
			}
			parts := said.FindStringSubmatch(setting.Help)
			require.NotNil(t, parts, "%s: %s has no default in its help", s.Name, setting.Name)
			for _, value := range parts[1:] {
				if value == "" {
					continue
				}
				require.Regexp(t, `\b`+setting.Name+`(: |', )`+value+`\b`, string(script), s.Name)
			}
		}
	}
}
