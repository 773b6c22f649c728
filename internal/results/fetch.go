package results

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/shard/store"
)

const fetchConcurrency = 8

// Fetch copies the files of a run from a store to out/TESTID. It replaces all shards there, and files of the same name.
// It calls progress after each copied file. A file that cannot be copied is a problem of the run.
func Fetch(ctx context.Context, from store.Store, out string, progress func(done, total int)) (d Dir, problems []string, err error) {
	names, err := runFiles(ctx, from)
	if err != nil {
		return "", nil, err
	}
	if err := makeFolder(out); err != nil {
		return "", nil, folderError(err)
	}
	tmp, err := os.MkdirTemp(out, ".fetch-") // in out, so that a rename can move each file
	if err != nil {
		return "", nil, fmt.Errorf("make a temporary folder: %w", err)
	}
	defer func() { err = cmp.Or(err, os.RemoveAll(tmp)) }()
	staging := Dir(tmp)
	if problems, err = staging.download(ctx, from, names, progress); err != nil {
		return "", nil, err
	}
	testid, err := staging.testID(path.Base(strings.TrimRight(from.At(""), "/")))
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", from.At(""), err)
	}
	d = Dir(filepath.Join(out, testid))
	return d, problems, staging.moveTo(d)
}

// FetchShards copies the shards of a run to its folder from the place where its runners stored them.
func (d Dir) FetchShards(ctx context.Context, from store.Store) error {
	names, err := from.Names(ctx)
	if err != nil {
		return err
	}
	problems, err := d.download(ctx, from, slices.DeleteFunc(names, func(name string) bool { return !shard.IsFile(name) }), func(int, int) {})
	if err == nil && len(problems) > 0 {
		err = errors.New(strings.Join(problems, "; "))
	}
	return err
}

func runFiles(ctx context.Context, from store.Store) (names []string, err error) {
	candidates, err := from.Names(ctx)
	if err != nil {
		return nil, err
	}
	shards := 0
	for _, name := range candidates {
		switch {
		case shard.IsFile(name):
			shards++
		case name == PlanFile, name == ResourcesFile, name == MachinesFile:
		case (strings.HasPrefix(name, "run") || strings.HasPrefix(name, "manifest")) && strings.HasSuffix(name, ".json"):
		case strings.HasPrefix(name, "backend-ledger") && strings.HasSuffix(name, ".ndjson"):
		default:
			continue
		}
		names = append(names, name)
	}
	if shards == 0 {
		return nil, fmt.Errorf("%s has no shard (*%s); check the prefix", from.At(""), shard.Suffix)
	}
	return names, nil
}

// download copies files of a store into the folder. A file that cannot be copied is a problem.
func (d Dir) download(ctx context.Context, from store.Store, names []string, progress func(done, total int)) (problems []string, err error) {
	if err := makeFolder(d.Path(ShardsDir)); err != nil {
		return nil, err
	}
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(fetchConcurrency)
	var mu sync.Mutex
	done := 0
	for _, name := range names {
		work.Go(func() error {
			data, err := from.Get(ctx, name)
			if err != nil && ctx.Err() == nil {
				mu.Lock()
				defer mu.Unlock()
				problems = append(problems, err.Error())
				return nil
			}
			if err != nil {
				return err
			}
			file := name
			if shard.IsFile(name) {
				file = filepath.Join(ShardsDir, name)
			}
			if err := os.WriteFile(d.Path(file), data, 0o644); err != nil { // #nosec G306 -- see makeFolder
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			done++
			progress(done, len(names))
			return nil
		})
	}
	err = work.Wait()
	slices.Sort(problems)
	return problems, err
}

// testID returns the test id of the first readable shard, or "soak" if this shard has none. Without a readable shard,
// testID returns the name of the source folder, or "soak" if this name is not a valid test id.
func (d Dir) testID(folder string) (string, error) {
	paths, err := d.shardFiles()
	if err != nil {
		return "", err
	}
	for _, path := range paths {
		s, err := shard.ReadFile(path)
		if err != nil {
			continue
		}
		return cmp.Or(s.Runner.TestID, "soak"), plan.CheckTestID(s.Runner.TestID)
	}
	if plan.CheckTestID(folder) != nil {
		return "soak", nil //nolint:nilerr // the name of the source folder is not valid
	}
	return folder, nil
}

// moveTo moves all files to a folder. It replaces all shards there, because a shard of an earlier fetch must not count.
func (d Dir) moveTo(to Dir) error {
	if err := makeFolder(string(to)); err != nil {
		return err
	}
	if err := os.RemoveAll(to.Path(ShardsDir)); err != nil {
		return err
	}
	entries, err := os.ReadDir(string(d))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.Rename(d.Path(e.Name()), to.Path(e.Name())); err != nil {
			return err
		}
	}
	return nil
}
