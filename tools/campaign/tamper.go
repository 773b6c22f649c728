package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// tampered is a run whose files are changed before they are merged again.
func tampered(change func(shard string) error, broken ...verdict.CheckID) prepare {
	return func(_ *rand.Rand, sc *scenario) {
		sc.want = invalid(broken...)
		sc.tamper = func(dir, _ string) error {
			shard, err := firstShard(dir)
			if err != nil {
				return err
			}
			return change(shard)
		}
	}
}

// staleShard puts a shard of the same run, made once before, in place of one.
func staleShard(_ *rand.Rand, sc *scenario) {
	sc.Earlier, sc.Plan.Runners, sc.want = true, 2, invalid()
	if sc.Service != nil {
		sc.Service.Nginx = false
	}
	sc.tamper = func(dir, stale string) error {
		old, err := firstShard(stale)
		if err != nil {
			return err
		}
		shard, err := firstShard(dir)
		if err != nil {
			return err
		}
		return rewritten(old, shard, func(b []byte) []byte { return b })
	}
}

func firstShard(dir string) (string, error) {
	shards, err := filepath.Glob(filepath.Join(dir, results.ShardsDir, "*.json.gz"))
	if err != nil || len(shards) == 0 {
		return "", fmt.Errorf("no shards in %s", dir)
	}
	return shards[0], nil
}

// without removes a file of the run.
func without(name string) func(string) error {
	return func(shard string) error { return os.Remove(filepath.Join(filepath.Dir(shard), "..", name)) }
}

func copied(shard string) error {
	return rewritten(shard, filepath.Join(filepath.Dir(shard), "runner-9.json.gz"), func(b []byte) []byte { return b })
}

func changed(how func([]byte) []byte) func(string) error {
	return func(shard string) error { return rewritten(shard, shard, how) }
}

func rewritten(from, to string, how func([]byte) []byte) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, how(b), 0o644)
}

func cut(b []byte) []byte { return b[:len(b)*2/3] }

func flip(b []byte) []byte {
	b[len(b)/2] ^= 4
	return b
}
