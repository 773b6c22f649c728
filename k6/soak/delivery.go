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

// Time limits of deliveries, retries included. The run does not start before the first delivery has succeeded. The last
// delivery has more time, because all data would be lost without it. After an interrupt it has less, because a user
// waits. The limit of a checkpoint is the shortest time between two checkpoints.
const (
	initialTimeout    = 30 * time.Second
	finalTimeout      = 3 * time.Minute
	interruptTimeout  = 15 * time.Second
	checkpointTimeout = 30 * time.Second
)

// A delivery writes the shard of one runner to its folder or bucket. It writes checkpoints in the background, so that a
// slow bucket does not delay measurements. No checkpoint can overwrite the final shard.
type delivery struct {
	store        store.Store // folder or bucket
	name         string      // file name of the shard
	explicitName bool        // the user chose the name, so another process may use the same name; see checkOwner
	log          logrus.FieldLogger
	timeout      time.Duration // for the final shard; without success, the shard is saved on this machine
	localName    string        // file name on this machine
	localFolders []string      // folders on this machine, tried in this order
	onRetry      func(string)  // gets the error that causes a retry, "" after success
	mayReplace   func() bool   // reports whether a checkpoint may replace the previous one

	mu      sync.Mutex         // held during a delivery
	cancel  context.CancelFunc // ends the delivery of the last checkpoint; nil: there was none
	encoder shard.Encoder
}

// deliverInitial writes a shard before the run starts. It thus detects a folder or bucket that is not writable, and
// replaces the shard of an earlier run. If the user chose the name, an existing file is an error.
func (d *delivery) deliverInitial(s *shard.Shard) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), initialTimeout)
	defer cancel()
	if d.explicitName {
		names, err := d.store.Names(ctx)
		if err != nil {
			return fmt.Errorf("check whether %s exists: %w", d.store.At(d.name), err)
		}
		if slices.Contains(names, d.name) {
			return fmt.Errorf("%s exists; remove it, or name a folder, in which each process writes its own file", d.store.At(d.name))
		}
	}
	return d.upload(ctx, s)
}

// deliverCheckpoint writes a checkpoint in the background. It skips the checkpoint if the previous one is still being
// written, or must not be replaced.
func (d *delivery) deliverCheckpoint(s *shard.Shard) {
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
		if err == nil && !d.mayReplace() {
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

// deliverFinal cancels a checkpoint in progress and writes the final shard. If that fails, it tries to save the shard
// on this machine. The error contains the path of the saved shard, or reports that the data is lost.
func (d *delivery) deliverFinal(s *shard.Shard) error {
	if d.cancel != nil {
		d.cancel() // the final shard has the content of the checkpoint, too
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
	path, saveErr := d.saveLocally(s)
	if saveErr != nil {
		return fmt.Errorf("write the shard: %w (its data is lost)", errors.Join(err, saveErr))
	}
	return fmt.Errorf("write the shard: %w (it is saved as %s); copy it to %s and run `soak merge`", err, path, d.store.At(d.name))
}

func (d *delivery) upload(ctx context.Context, s *shard.Shard) error {
	data, err := d.encoder.Encode(s)
	if err != nil {
		return err
	}
	return d.put(ctx, s, data)
}

func (d *delivery) put(ctx context.Context, s *shard.Shard, data []byte) error {
	if err := d.checkOwner(ctx, s); err != nil {
		return err
	}
	retried := false
	ctx = store.OnRetry(ctx, func(message string) {
		retried = true
		d.onRetry(message)
	})
	err := d.store.Put(ctx, d.name, data)
	if err == nil && retried {
		d.onRetry("")
	}
	return err
}

// checkOwner returns an error if another process has written the file since deliverInitial found that it did not exist.
// That can happen only if the user chose the name.
func (d *delivery) checkOwner(ctx context.Context, s *shard.Shard) error {
	if !d.explicitName {
		return nil
	}
	data, err := d.store.Get(ctx, d.name)
	if err != nil {
		return nil //nolint:nilerr // the file does not exist; Put returns other errors
	}
	existing, err := shard.Read(bytes.NewReader(data))
	if err == nil && existing.Runner.Process == s.Runner.Process {
		return nil
	}
	return fmt.Errorf("%s is the shard of another process; name a folder, in which each process writes its own file", d.store.At(d.name))
}

// saveLocally writes a shard to the first of localFolders that is writable, and returns the path of the file.
func (d *delivery) saveLocally(s *shard.Shard) (path string, err error) {
	for _, dir := range d.localFolders {
		path, saveErr := filepath.Abs(filepath.Join(dir, d.localName))
		if saveErr == nil {
			saveErr = shard.Write(path, s)
		}
		if saveErr == nil {
			return path, nil
		}
		err = errors.Join(err, saveErr)
	}
	return "", err
}
