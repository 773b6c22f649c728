package results

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

const verdictSchema = "../../docs/reference/verdict.schema.json"

// requireSchema validates the verdict.json of a run against its JSON Schema.
func requireSchema(t *testing.T, file string) {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile(verdictSchema)
	require.NoError(t, err)
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	v, err := jsonschema.UnmarshalJSON(f)
	require.NoError(t, err)
	require.NoError(t, schema.Validate(v), file)
}

// The verdicts of real runs, read by other programs, are as the schema says. TestEachSuiteHasTheFilesOfWhatItDid validates
// one of each suite, and the end-to-end tests every verdict that they read.
func TestVerdictsOfRealRunsFitTheSchema(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/golden/*/want/verdict.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		requireSchema(t, file)
	}
}

func TestSchemaRefusesAnotherVersion(t *testing.T) {
	t.Parallel()
	schema, err := jsonschema.NewCompiler().Compile(verdictSchema)
	require.NoError(t, err)
	require.Error(t, schema.Validate(map[string]any{"schema": 1}))
}
