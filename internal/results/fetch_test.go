package results

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/shard/store"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// newStore returns a store with the plan of a run and the shards of its two runners.
func newStore(t *testing.T) store.Folder {
	t.Helper()
	from := store.Folder(t.TempDir())
	p := testPlan()
	require.NoError(t, Dir(from).WriteJSON(PlanFile, p))
	for i := 1; i <= 2; i++ {
		require.NoError(t, shard.Write(from.At(shard.FileName(shard.Runner{Index: i})), testShard(p, i)))
	}
	return from
}

// fetch fetches a run, and requires that it has no problems.
func fetch(t *testing.T, from store.Store, out string) Dir {
	t.Helper()
	last := 0
	d, problems, err := Fetch(t.Context(), from, out, func(done, total int) {
		require.Equal(t, last+1, done)
		require.LessOrEqual(t, done, total)
		last = done
	})
	require.NoError(t, err)
	require.Empty(t, problems)
	require.Positive(t, last)
	return d
}

func TestFetchedFolderIsARun(t *testing.T) {
	t.Parallel()
	from, out := newStore(t), filepath.Join(t.TempDir(), "results")
	require.NoError(t, from.Put(t.Context(), "report.html", []byte("page of the user")))
	d := fetch(t, from, out)
	require.Equal(t, filepath.Join(out, "t"), string(d))
	require.NoFileExists(t, d.Path("report.html"))
	judge(t, d, verdict.Pass, "")
	entries, err := os.ReadDir(out)
	require.NoError(t, err)
	require.Len(t, entries, 1, "the temporary folder still exists")
}

// Shards of requests have no plan of streams.
func TestShardsOfAnySuiteAreFetched(t *testing.T) {
	t.Parallel()
	from := store.Folder(t.TempDir())
	s := testShard(plan.Plan{}, 1)
	s.Plan, s.Connections, s.Suite, s.Runner.TestID = plan.Plan{}, nil, &shard.Suite{Name: "rampup"}, "climb"
	s.Runner.Segment = "0:1"
	require.NoError(t, shard.Write(from.At(shard.FileName(s.Runner)), s))
	d := fetch(t, from, t.TempDir())
	require.Equal(t, "climb", filepath.Base(string(d)))
	v, _, err := d.Judge()
	require.NoError(t, err)
	require.Equal(t, "rampup", v.Suite.Name)
}

func TestFetchReplacesShards(t *testing.T) {
	t.Parallel()
	from, out := newStore(t), t.TempDir()
	fetch(t, from, out)
	require.NoError(t, os.Remove(from.At(shard.FileName(shard.Runner{Index: 2}))))
	judge(t, fetch(t, from, out), verdict.Invalid, "runner 2 of 2 left no shard")
}

func TestFetchErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		from func(t *testing.T) store.Store
		want string
	}{
		{"an empty folder", func(t *testing.T) store.Store { return store.Folder(t.TempDir()) }, "has no shard (*.json.gz); check the prefix"},
		{"a missing folder", func(t *testing.T) store.Store { return store.Folder(t.TempDir() + "/none") }, "none"},
		{"a test id that is a path", func(t *testing.T) store.Store {
			from := store.Folder(t.TempDir())
			p := testPlan()
			p.TestID = "../../elsewhere"
			require.NoError(t, shard.Write(from.At(shard.FileName(shard.Runner{Index: 1})), testShard(p, 1)))
			return from
		}, "TESTID must be the name of a folder"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out := t.TempDir()
			_, _, err := Fetch(t.Context(), c.from(t), out, func(int, int) {})
			require.ErrorContains(t, err, c.want)
			entries, err := os.ReadDir(out)
			require.NoError(t, err)
			require.Empty(t, entries, "files are left")
		})
	}
}

// An unreadableStore lists files that it does not return.
type unreadableStore struct{ store.Folder }

func (unreadableStore) Get(context.Context, string) ([]byte, error) {
	return nil, errors.New("connection reset")
}

// A run with missing or damaged files still gets a verdict.
func TestPartialFetchIsInvalid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit func(t *testing.T, from store.Folder) store.Store
		want string
	}{
		"unreadable files": {func(_ *testing.T, from store.Folder) store.Store { return unreadableStore{from} }, "connection reset"},
		"the only shards are broken": {func(t *testing.T, from store.Folder) store.Store {
			for i := 1; i <= 2; i++ {
				require.NoError(t, from.Put(t.Context(), shard.FileName(shard.Runner{Index: i}), []byte("x")))
			}
			require.NoError(t, os.Remove(from.At(PlanFile)))
			return from
		}, "runner-1.json.gz: not a complete gzip file"},
		"a truncated plan": {func(t *testing.T, from store.Folder) store.Store {
			require.NoError(t, from.Put(t.Context(), PlanFile, []byte("{")))
			return from
		}, "plan.json is not a valid plan"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, out := newStore(t), t.TempDir()
			d, problems, err := Fetch(t.Context(), c.edit(t, from), out, func(int, int) {})
			require.NoError(t, err)
			judge(t, d, verdict.Invalid, c.want, problems...)
		})
	}
}

// All files that a manifest may require are fetched, because a missing file would make the run invalid.
func TestAllEvidenceIsFetched(t *testing.T) {
	t.Parallel()
	from := newStore(t)
	for _, part := range []int{0, 1, 2} {
		for _, name := range append(Evidence(part), ManifestName(part)) {
			require.NoError(t, from.Put(t.Context(), name, []byte("{}")))
		}
	}
	names, err := runFiles(t.Context(), from)
	require.NoError(t, err)
	for _, part := range []int{0, 1, 2} {
		require.Subset(t, names, append(Evidence(part), ManifestName(part)))
	}
}
