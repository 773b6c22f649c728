package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/sse-soak/sse-soak/internal/cluster"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/store"
)

// openShards opens the place of the shards as it is reached from here.
func (s *clusterSession) openShards(ctx context.Context) (store.Store, error) {
	place := s.place
	if u, err := url.Parse(place); err == nil {
		query := u.Query()
		if service, inside := cluster.ServiceOf(query.Get("endpoint")); inside {
			forward, err := s.client.OpenService(ctx, service)
			if err != nil {
				return nil, err
			}
			s.closers = append(s.closers, forward.Close)
			query.Set("endpoint", "http://"+forward.Address)
			u.RawQuery = query.Encode()
			place = u.String()
		}
	}
	return store.Open(ctx, place)
}

// tryShards finds a bucket that cannot be read before the run and not after it. Only the runners
// need to be able to write to it; each does so before it begins.
func (s *clusterSession) tryShards(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(telling(ctx), claimWithin)
	defer cancel()
	shards, err := s.openShards(ctx)
	if err != nil {
		return err
	}
	defer shards.Close()
	names, err := shards.Names(ctx)
	if err != nil {
		return fmt.Errorf("the shards could not be fetched after the run: %w", err)
	}
	if i := slices.IndexFunc(names, shard.IsFile); i >= 0 {
		return fmt.Errorf("%s is of an earlier run: choose another --testid, or remove what is there", shards.At(names[i]))
	}
	return nil
}

// fetch brings the shards to the folder of the run. One that does not come is missing, which the
// verdict says. The way into the cluster may break, so it is tried anew.
func (s *clusterSession) fetch(graceful, force context.Context) {
	ctx, cancel := waiting(graceful, force, fetchWithin)
	defer cancel()
	const tries = 3
	s.say("fetching the shards")
	for n := 1; ; n++ {
		err := s.fetchOnce(ctx)
		switch {
		case err == nil:
			return
		case n == tries || ctx.Err() != nil:
			s.run.Problems = append(s.run.Problems, "the shards could not be collected: "+err.Error())
			return
		}
		s.say(fmt.Sprintf("%v; trying again", err))
	}
}

func (s *clusterSession) fetchOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, fetchWithin/3)
	defer cancel()
	from, err := s.openShards(ctx)
	if err != nil {
		return err
	}
	return errors.Join(s.dir.FetchShards(ctx, from), from.Close())
}
