package main

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
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/store"
)

// How long the place of the shards may take to answer: before the load, at the end of a run, and
// of one that was interrupted.
const (
	claimWithin     = 30 * time.Second
	fetchWithin     = 15 * time.Minute
	impatientWithin = 10 * time.Second
)

// complain says on the terminal what is tried again.
func complain(sentence string) { fmt.Fprintln(os.Stderr, "soak:", sentence) }

// telling is a context under which stores say what they try again, each thing once in a while.
func telling(ctx context.Context) context.Context {
	const every = 10 * time.Second
	var mu sync.Mutex
	said := map[string]time.Time{}
	return store.OnRetry(ctx, func(sentence string) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(said[sentence]) > every {
			said[sentence] = time.Now()
			complain(sentence)
		}
	})
}

// waiting is how long to wait for the place of the shards when the run is over: until the first
// Ctrl-C, or, where that ended the run, not for long.
func waiting(graceful, force context.Context, within time.Duration) (context.Context, context.CancelFunc) {
	if graceful.Err() != nil {
		graceful, within = force, impatientWithin
	}
	return context.WithTimeout(telling(graceful), within)
}

// claim finds out before the load whether shards can be written where they are to go, and read
// again: it leaves the manifest there. What an earlier run left there would be mixed with this one's.
func (s *session) claim(ctx context.Context, m results.Manifest) error {
	if s.Shards == "" {
		return nil
	}
	waiting, cancel := context.WithTimeout(telling(ctx), claimWithin)
	defer cancel()
	err := s.claimPlace(waiting, m)
	if err != nil && ctx.Err() != nil {
		return errors.Join(errors.New("stopped before the start: nothing was run"), err)
	}
	return err
}

func (s *session) claimPlace(ctx context.Context, m results.Manifest) error {
	to, err := store.Create(ctx, s.place)
	if err != nil {
		return err
	}
	defer to.Close()
	names, err := to.Names(ctx)
	if err != nil {
		return fmt.Errorf("the shards could not be merged from where they are to go: %w", err)
	}
	for _, name := range names {
		if index, _ := shard.IndexOf(name); shard.IsFile(name) && (s.part == 0 || index == s.part) {
			return fmt.Errorf("%s is of an earlier run: choose another --testid, or remove what is there", to.At(name))
		}
	}
	manifest := results.ManifestName(s.part)
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if err := to.Put(ctx, manifest, text); err != nil {
		return fmt.Errorf("the shards cannot go where they are to: %w", err)
	}
	there, err := to.Get(ctx, manifest)
	if err == nil && !bytes.Equal(there, text) {
		err = fmt.Errorf("read %s: it is not what was written", to.At(manifest))
	}
	if err != nil {
		return fmt.Errorf("the shards could not be merged from where they are to go: %w", err)
	}
	return nil
}

// collect brings the shards of a whole run to its folder, where they were left elsewhere. One
// that does not come is missing, which the verdict says. ok is whether that place answers.
func (s *session) collect(graceful, force context.Context) (ok bool) {
	if s.Shards == "" {
		return true
	}
	ctx, cancel := waiting(graceful, force, fetchWithin)
	defer cancel()
	from, err := store.Open(ctx, s.place)
	if err == nil {
		err = errors.Join(s.dir.FetchShards(ctx, from), from.Close())
	}
	if err != nil {
		s.run.Problems = append(s.run.Problems, "the shards could not be collected: "+err.Error())
	}
	return err == nil
}

// deliver brings what a verdict rests on to the shards, where those are not in the folder of the run.
func (s *session) deliver(graceful, force context.Context) error {
	if s.Shards == "" {
		return nil
	}
	ctx, cancel := waiting(graceful, force, deliverWithin)
	defer cancel()
	to, err := store.Open(ctx, s.place)
	if err != nil {
		return err
	}
	defer to.Close()
	for _, name := range append([]string{results.ManifestName(s.part)}, results.Evidence(s.part)...) {
		data, err := os.ReadFile(s.dir.Path(name))
		if errors.Is(err, os.ErrNotExist) {
			continue // a foreign service has no ledger
		}
		if err == nil {
			err = to.Put(ctx, name, data)
		}
		if err != nil {
			return fmt.Errorf("what this machine saw stays in %s, copy it from there: %w", s.dir, err)
		}
	}
	return nil
}
