package soak

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/sse-soak/sse-soak/shard"
	"github.com/sse-soak/sse-soak/store"
)

// How long a delivery may keep trying: the first before the run waits for it, a checkpoint
// until the next is due, the last while the runner still has something to lose, or until somebody
// who waits for it gives up.
const (
	firstWithin       = 30 * time.Second
	lastWithin        = 3 * time.Minute
	interruptedWithin = 15 * time.Second
)

// A delivery brings the shard of one runner to its place: a checkpoint now and then, in the
// background, so that a slow place holds up nothing that is measured; and the last word, which
// no checkpoint can overtake.
type delivery struct {
	place  store.Store
	name   string
	named  bool // the name is not of this process alone: see mine
	log    logrus.FieldLogger
	within time.Duration // for the last; then it is kept
	keepAs string        // name of what is kept on this machine
	keepIn []string      // folders, the first that takes it
	tell   func(string)  // what is tried again; "" once it is over. nil: nobody listens

	mu      sync.Mutex // held by whoever is delivering
	cancel  context.CancelFunc
	encoder shard.Encoder
}

// first delivers before the run begins: a place that cannot be written is found now, and what an
// earlier run left there cannot be taken for this one's.
func (d *delivery) first(s *shard.Shard) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), firstWithin)
	defer cancel()
	if d.named {
		names, err := d.place.Names(ctx)
		if err != nil {
			return fmt.Errorf("look whether %s is free: %w", d.place.At(d.name), err)
		}
		if slices.Contains(names, d.name) {
			return fmt.Errorf("%s is there already: remove it, or name a folder, in which each process gets a file of its own", d.place.At(d.name))
		}
	}
	return d.put(ctx, s)
}

// checkpoint delivers in the background. While the one before is still under way it does nothing.
func (d *delivery) checkpoint(s *shard.Shard) {
	if !d.mu.TryLock() {
		d.log.Warn("A checkpoint was left out, because the one before is still under way.")
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), checkpointEvery)
	d.cancel = cancel
	go func() {
		defer d.mu.Unlock()
		defer cancel()
		if err := d.put(ctx, s); err != nil && !errors.Is(ctx.Err(), context.Canceled) {
			d.log.WithError(err).Warn("A checkpoint could not be written; the run goes on and tries again.")
		}
	}()
}

// last delivers the whole account. Where that fails it is kept on this machine, and the error
// says where; the run is no pass until it is brought to its place.
func (d *delivery) last(s *shard.Shard) error {
	if d.cancel != nil {
		d.cancel() // a checkpoint: this one has all that it has
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, d.within)
	defer cancel()
	err := d.put(ctx, s)
	if err == nil {
		return nil
	}
	kept, keepErr := d.keep(s)
	if keepErr != nil {
		return fmt.Errorf("the shard could not be delivered, and what was seen is lost: %w", errors.Join(err, keepErr))
	}
	return fmt.Errorf("the shard could not be delivered; it is kept as %s: copy it to %s, then `soak merge` sees it (%w)", kept, d.place.At(d.name), err)
}

func (d *delivery) put(ctx context.Context, s *shard.Shard) error {
	data, err := d.encoder.Encode(s)
	if err != nil {
		return err
	}
	if err := d.mine(ctx, s); err != nil {
		return err
	}
	if d.tell == nil {
		return d.place.Put(ctx, d.name, data)
	}
	tried := false
	ctx = store.OnRetry(ctx, func(trouble string) {
		tried = true
		d.tell(trouble)
	})
	if err = d.place.Put(ctx, d.name, data); err == nil && tried {
		d.tell("")
	}
	return err
}

// mine says that a file of that name is of another process, which began at the same time.
func (d *delivery) mine(ctx context.Context, s *shard.Shard) error {
	if !d.named {
		return nil
	}
	data, err := d.place.Get(ctx, d.name)
	if err != nil {
		return nil //nolint:nilerr // none is there yet; what else is wrong Put says
	}
	there, err := shard.Read(bytes.NewReader(data))
	if err == nil && there.Runner.Process == s.Runner.Process {
		return nil
	}
	return fmt.Errorf("%s is the shard of another process: name a folder, in which each process gets a file of its own", d.place.At(d.name))
}

func (d *delivery) keep(s *shard.Shard) (path string, err error) {
	for _, dir := range d.keepIn {
		path, absErr := filepath.Abs(filepath.Join(dir, d.keepAs))
		if absErr == nil {
			absErr = shard.Write(path, s)
		}
		if absErr == nil {
			return path, nil
		}
		err = errors.Join(err, absErr)
	}
	return "", err
}

// places where a shard that could not be delivered is kept.
func keepIn() []string { return []string{".", os.TempDir()} }
