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

	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/shard/store"
)

// How long a delivery may keep trying. The run does not begin before the first has succeeded. The last has
// more time, since all data is lost without it; less if somebody interrupted the run and is waiting. A
// checkpoint has until the next one may be due.
const (
	initialTimeout    = 30 * time.Second
	finalTimeout      = 3 * time.Minute
	interruptTimeout  = 15 * time.Second
	checkpointTimeout = 30 * time.Second
)

// A delivery writes the shard of one runner to its folder or bucket: checkpoints in the background, so
// that a slow bucket delays nothing that is measured, and the final shard, which no checkpoint can
// overwrite.
type delivery struct {
	store    store.Store
	name     string
	explicit bool // the user chose the name, so that another process may have it too: see mine
	log      logrus.FieldLogger
	timeout  time.Duration // for the final shard; after that it is kept on this machine
	keepAs   string        // its file name there
	keepIn   []string      // folders to try, in this order
	onRetry  func(string)  // receives the error that is being retried, "" when it is over; may be nil
	current  func() bool   // reports whether a checkpoint of the present may replace the last one; nil: it may

	mu      sync.Mutex // held during a delivery
	cancel  context.CancelFunc
	encoder shard.Encoder
}

// initial delivers before the run begins, so that a folder or bucket that cannot be written is found now, and
// a shard of an earlier run cannot be taken for one of this run.
func (d *delivery) initial(s *shard.Shard) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), initialTimeout)
	defer cancel()
	if d.explicit {
		names, err := d.store.Names(ctx)
		if err != nil {
			return fmt.Errorf("look whether %s is free: %w", d.store.At(d.name), err)
		}
		if slices.Contains(names, d.name) {
			return fmt.Errorf("%s is already there; remove it, or name a folder, in which each process writes its own file", d.store.At(d.name))
		}
	}
	return d.upload(ctx, s)
}

// checkpoint delivers in the background. It does nothing while the previous one is still under way.
func (d *delivery) checkpoint(s *shard.Shard) {
	if !d.mu.TryLock() {
		d.log.Warn("A checkpoint was skipped, because the previous one is still being written.")
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), checkpointTimeout)
	d.cancel = cancel
	go func() {
		defer d.mu.Unlock()
		defer cancel()
		data, err := d.encoder.Encode(s)
		if err == nil && d.current != nil && !d.current() {
			return
		}
		if err == nil {
			err = d.put(ctx, s, data)
		}
		if err != nil && !errors.Is(ctx.Err(), context.Canceled) {
			d.log.WithError(err).Warn("A checkpoint could not be written; the run continues and will write the next one.")
		}
	}()
}

// final delivers the final shard. If that fails, the shard is kept on this machine, and the error says
// where. The run cannot pass until the shard is copied to where it belongs.
func (d *delivery) final(s *shard.Shard) error {
	if d.cancel != nil {
		d.cancel() // a checkpoint, whose content is in this shard too
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	err := d.upload(ctx, s)
	if err == nil {
		return nil
	}
	path, keepErr := d.saveLocally(s)
	if keepErr != nil {
		return fmt.Errorf("the shard could not be delivered, and what was seen is lost: %w", errors.Join(err, keepErr))
	}
	return fmt.Errorf("the shard could not be delivered; it is kept as %s: copy it to %s, then `soak merge` sees it (%w)", path, d.store.At(d.name), err)
}

func (d *delivery) upload(ctx context.Context, s *shard.Shard) error {
	data, err := d.encoder.Encode(s)
	if err != nil {
		return err
	}
	return d.put(ctx, s, data)
}

// put stores an encoded shard.
func (d *delivery) put(ctx context.Context, s *shard.Shard, data []byte) error {
	if err := d.checkOwner(ctx, s); err != nil {
		return err
	}
	if d.onRetry == nil {
		return d.store.Put(ctx, d.name, data)
	}
	retried := false
	ctx = store.OnRetry(ctx, func(trouble string) {
		retried = true
		d.onRetry(trouble)
	})
	err := d.store.Put(ctx, d.name, data)
	if err == nil && retried {
		d.onRetry("")
	}
	return err
}

// checkOwner returns an error if a file of that name belongs to another process, which began at the same time.
func (d *delivery) checkOwner(ctx context.Context, s *shard.Shard) error {
	if !d.explicit {
		return nil
	}
	data, err := d.store.Get(ctx, d.name)
	if err != nil {
		return nil //nolint:nilerr // there is none yet; Put reports any other error
	}
	existing, err := shard.Read(bytes.NewReader(data))
	if err == nil && existing.Runner.Process == s.Runner.Process {
		return nil
	}
	return fmt.Errorf("%s is the shard of another process: name a folder, in which each process gets a file of its own", d.store.At(d.name))
}

func (d *delivery) saveLocally(s *shard.Shard) (path string, err error) {
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

// fallbackFolders returns the folders for a shard that could not be delivered.
func fallbackFolders() []string { return []string{".", os.TempDir()} }
