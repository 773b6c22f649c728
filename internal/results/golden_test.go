package results

import (
	"compress/gzip"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

var update = flag.Bool("update", false, "update the golden files")

// A verdict is a pure function of the files of a run: the files of four real runs still result in the same verdicts,
// reports and tables. The runs are a soak that lost a noop on one stream, a soak of nchan that lost a message and
// repeated another, a capacity run, and a ramp-up.
func TestFilesReproduceTheVerdict(t *testing.T) {
	t.Parallel()
	runs, err := filepath.Glob("testdata/golden/*")
	require.NoError(t, err)
	require.NotEmpty(t, runs)
	for _, run := range runs {
		t.Run(filepath.Base(run), func(t *testing.T) {
			t.Parallel()
			d := Dir(filepath.Join(t.TempDir(), filepath.Base(run)))
			restore(t, run, d)
			v, m, err := d.Judge()
			require.NoError(t, err)
			require.NoError(t, d.Report(v, m, ""))
			requireSchema(t, d.Path(VerdictFile))
			names := []string{VerdictFile, "report.md", "report.txt", "series.csv"}
			if m.Connections.Len() > 0 {
				names = append(names, ConnectionsFile)
			} else {
				require.NoFileExists(t, d.Path(ConnectionsFile), "a run without streams must have no file of connections")
			}
			for i := range v.Tables {
				names = append(names, report.TableFile(&v.Tables[i]))
			}
			for _, name := range names {
				got, err := os.ReadFile(d.Path(name))
				require.NoError(t, err)
				golden := filepath.Join(run, "want", name)
				if *update {
					require.NoError(t, os.MkdirAll(filepath.Dir(golden), 0o755))
					require.NoError(t, os.WriteFile(golden, got, 0o644))
				}
				want, err := os.ReadFile(golden)
				require.NoError(t, err, "write the golden files with: go test ./internal/results -update")
				require.Equal(t, string(want), string(got), "%s of %s", name, run)
			}
		})
	}
}

// The plan of a capacity run has no noop interval. Its script declares the interval in the shards, which are missing.
func TestSuiteWithoutShardsIsInvalid(t *testing.T) {
	t.Parallel()
	d := Dir(filepath.Join(t.TempDir(), "capacity"))
	restore(t, "testdata/golden/capacity", d)
	require.NoError(t, os.RemoveAll(d.Path(ShardsDir)))
	judge(t, d, verdict.Invalid, "")
}

// restore creates the folder of a run from a golden folder, whose shards are stored uncompressed.
func restore(t *testing.T, from string, d Dir) {
	t.Helper()
	require.NoError(t, os.MkdirAll(d.Path(ShardsDir), 0o755))
	files, err := filepath.Glob(filepath.Join(from, "*json"))
	require.NoError(t, err)
	for _, path := range files {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(d.Path(filepath.Base(path)), content, 0o644))
	}
	shards, err := filepath.Glob(filepath.Join(from, ShardsDir, "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, shards)
	for _, path := range shards {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		f, err := os.Create(d.Path(filepath.Join(ShardsDir, strings.TrimSuffix(filepath.Base(path), ".json")+".json.gz")))
		require.NoError(t, err)
		z := gzip.NewWriter(f)
		_, err = z.Write(content)
		require.NoError(t, err)
		require.NoError(t, z.Close())
		require.NoError(t, f.Close())
	}
}

var verdictSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	return jsonschema.NewCompiler().Compile("../../docs/reference/verdict.schema.json")
})

// requireSchema validates the verdict.json of a run against its JSON Schema. The end-to-end tests validate each
// verdict that they read.
func requireSchema(t *testing.T, file string) {
	t.Helper()
	schema, err := verdictSchema()
	require.NoError(t, err)
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	v, err := jsonschema.UnmarshalJSON(f)
	require.NoError(t, err)
	require.NoError(t, schema.Validate(v), file)
}

func TestSchemaRejectsAnotherVersion(t *testing.T) {
	t.Parallel()
	schema, err := verdictSchema()
	require.NoError(t, err)
	require.Error(t, schema.Validate(map[string]any{"schema": 1}))
}
