package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/sse-soak/sse-soak/internal/results"
)

// What happens to the files of a run before they are merged again.
const (
	tamperNothing = "nothing"
	tamperMissing = "a shard removed"
	tamperTwice   = "a shard twice"
	tamperCut     = "a shard cut short"
	tamperFlip    = "a bit of a shard flipped"
	tamperStale   = "a shard of another run"
	tamperRun     = "run.json removed"
	tamperLedger  = "the server's ledger removed"
)

func tampered(what, reason string) func(*rand.Rand, *scenario) {
	return func(_ *rand.Rand, sc *scenario) {
		sc.Tamper = what
		if what == tamperStale {
			sc.Plan.Runners = 2
			sc.Service.Nginx = false
		}
		want := invalid(reason)
		sc.want = &want
	}
}

// tamper changes the files of a run in dir. stale is the folder of an earlier run of the same plan.
func tamper(what, dir, stale string) error {
	shards, err := filepath.Glob(filepath.Join(dir, results.ShardsDir, "*.json.gz"))
	if err != nil || len(shards) == 0 {
		return errors.Join(err, fmt.Errorf("no shards in %s", dir))
	}
	shard := shards[0]
	switch what {
	case tamperMissing:
		return os.Remove(shard)
	case tamperTwice:
		b, err := os.ReadFile(shard)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(filepath.Dir(shard), "runner-9.json.gz"), b, 0o644)
	case tamperCut, tamperFlip:
		b, err := os.ReadFile(shard)
		if err != nil {
			return err
		}
		return os.WriteFile(shard, spoil(what, b), 0o644)
	case tamperStale:
		old, err := filepath.Glob(filepath.Join(stale, results.ShardsDir, "*.json.gz"))
		if err != nil || len(old) == 0 {
			return errors.Join(err, fmt.Errorf("no shards in %s", stale))
		}
		b, err := os.ReadFile(old[0])
		if err != nil {
			return err
		}
		return os.WriteFile(shard, b, 0o644)
	case tamperRun:
		return os.Remove(filepath.Join(dir, results.RunFile))
	case tamperLedger:
		return os.Remove(filepath.Join(dir, results.LedgerFile))
	}
	return nil
}

// spoil cuts a file short or flips a bit in it.
func spoil(what string, b []byte) []byte {
	if what == tamperCut {
		return b[:len(b)*2/3]
	}
	b = append([]byte(nil), b...)
	b[len(b)/2] ^= 4
	return b
}
