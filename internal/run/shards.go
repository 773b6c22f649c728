package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/safefile"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/shard/store"
)

// Time limits for access to the location of the shards.
const (
	claimTimeout       = 30 * time.Second // before the load
	fetchTimeout       = 15 * time.Minute // to fetch all shards after the run
	deliverTimeout     = 3 * time.Minute  // to upload the files of this machine after the run
	interruptedTimeout = 10 * time.Second // for each access after an interrupted run
)

// printMessage prints a message to stderr, above the lines of progress.
func printMessage(sentence string) { fmt.Fprintln(stderr, "soak:", sentence) }

// withProgress returns a context in which stores report their retries, each cause at most once per reportEvery.
func withProgress(ctx context.Context) context.Context {
	const reportEvery = 10 * time.Second
	var mu sync.Mutex
	reportedAt := map[string]time.Time{}
	return store.OnRetry(ctx, func(sentence string) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(reportedAt[sentence]) > reportEvery {
			reportedAt[sentence] = time.Now()
			printMessage(sentence)
		}
	})
}

// storageContext returns the context for access to the location of the shards after the run. It ends after limit, or at
// the first Ctrl-C. After an interrupted run, it ends after interruptedTimeout, or at the second Ctrl-C.
func storageContext(graceful, force context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if graceful.Err() != nil {
		graceful, limit = force, interruptedTimeout
	}
	return context.WithTimeout(withProgress(graceful), limit)
}

// claim checks before the load that this machine can read shards at their location. If write is set, it also writes the
// manifest there, and reads it back. Without --continue, shards of an earlier run are an error, because a merge would
// mix them with the new ones. With --runner, only a shard of the same runner is an error.
func (s *session) claim(ctx context.Context, write bool) error {
	ctx, cancel := context.WithTimeout(withProgress(ctx), claimTimeout)
	defer cancel()
	open := s.driver.openShards
	if write {
		open = store.Create
	}
	destination, err := open(ctx, s.location)
	if err != nil {
		return err
	}
	defer destination.Close()
	names, err := destination.Names(ctx)
	if err != nil {
		return fmt.Errorf("test the location of the shards: %w", err)
	}
	for _, name := range names {
		if index, _ := shard.IndexOf(name); shard.IsFile(name) && !s.Continue && (s.runnerNumber == 0 || index == s.runnerNumber) {
			return fmt.Errorf("%s belongs to an earlier run; choose another --testid, or remove that file", destination.At(name))
		}
	}
	if !write {
		return nil
	}
	manifest := results.ManifestName(s.runnerNumber)
	text, err := json.MarshalIndent(s.manifest(), "", "  ")
	if err != nil {
		return err
	}
	var content []byte
	if err = destination.Put(ctx, manifest, text); err == nil {
		content, err = destination.Get(ctx, manifest)
	}
	if err == nil && !bytes.Equal(content, text) {
		err = fmt.Errorf("read %s: the content differs from what was written", destination.At(manifest))
	}
	if err != nil {
		return fmt.Errorf("test the location of the shards: %w", err)
	}
	return nil
}

// manifest lists the files that a verdict of this run needs. It includes the ledger only if soak started the backend,
// because another service may have no ledger.
func (s *session) manifest() results.Manifest {
	return results.NewManifest(s.runnerNumber, s.Plan.RunID, s.Suite.Target.Streams && s.managesTarget, &s.record)
}

// collect fetches the shards of a whole run to its folder, if they are elsewhere, and sets hasShards. It makes several
// attempts, because the network may fail. Shards that it cannot fetch make the verdict invalid.
func (s *session) collect(graceful, force context.Context) {
	if s.Shards == "" {
		s.hasShards = true
		return
	}
	ctx, cancel := storageContext(graceful, force, fetchTimeout)
	defer cancel()
	const attempts = 3
	for n := 1; ; n++ {
		err := s.fetch(ctx, fetchTimeout/attempts)
		if s.hasShards = err == nil; s.hasShards {
			return
		}
		if n == attempts || ctx.Err() != nil {
			s.record.Problems = append(s.record.Problems, "the shards were not collected: "+err.Error())
			return
		}
		printMessage(fmt.Sprintf("%v; trying again", err))
	}
}

func (s *session) shardsLocation(d results.Dir) string {
	if s.Shards != "" {
		return store.Join(s.Shards, s.Plan.TestID)
	}
	return d.Path(results.ShardsDir)
}

func (s *session) fetch(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	source, err := s.driver.openShards(ctx, s.location)
	if err != nil {
		return err
	}
	return errors.Join(s.dir.FetchShards(ctx, source), source.Close())
}

// deliver copies the manifest and the evidence of this machine (results.Evidence) to the location of the shards, unless
// the shards are in the run's folder.
func (s *session) deliver(graceful, force context.Context) error {
	if s.Shards == "" {
		return nil
	}
	ctx, cancel := storageContext(graceful, force, deliverTimeout)
	defer cancel()
	destination, err := store.Open(ctx, s.location)
	if err != nil {
		return err
	}
	defer destination.Close()
	for _, name := range append([]string{results.ManifestName(s.runnerNumber)}, results.Evidence(s.runnerNumber)...) {
		data, err := safefile.Read(s.dir.Path(name), safefile.Table)
		if errors.Is(err, os.ErrNotExist) {
			continue // not every run has all files: a foreign service has no ledger
		}
		if err != nil {
			return fmt.Errorf("read the evidence of this machine: %w", err)
		}
		if err := destination.Put(ctx, name, data); err != nil {
			return fmt.Errorf("upload %s of this machine: %w; copy it from %s", name, err, s.dir)
		}
	}
	return nil
}
