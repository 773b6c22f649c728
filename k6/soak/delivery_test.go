package soak

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/shard/store"
	"github.com/sse-soak/sse-soak/test/fakebucket"
)

func TestShardIsWrittenToABucket(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	location := "s3://soaks/t" + fakebucket.Start(t, fakebucket.New(t, "soaks"))
	o := newTestOutput(t, params(t, location, map[string]string{"RUNNER": "2"}))
	require.Contains(t, o.Description(), "s3://soaks/t/"+o.name)
	bucket, err := store.Open(t.Context(), location)
	require.NoError(t, err)
	defer bucket.Close()
	state := func() shard.RunState {
		data, err := bucket.Get(t.Context(), o.name)
		require.NoError(t, err)
		s, err := shard.Read(bytes.NewReader(data))
		require.NoError(t, err)
		return s.Runner.State
	}
	require.NoError(t, o.Start())
	require.Equal(t, shard.Running, state())
	require.NoError(t, o.Stop())
	require.Equal(t, shard.Finished, state())
}

func newDelivery(to store.Store) (*delivery, *logtest.Hook) {
	log, hook := logtest.NewNullLogger()
	log.SetLevel(logrus.WarnLevel)
	return &delivery{
		store: to, name: shard.FileName(shard.Runner{Index: 1}), log: log, timeout: time.Minute,
		onRetry: func(string) {}, mayReplace: func() bool { return true },
	}, hook
}

// A stuckStore is a folder whose first Put blocks until its context ends.
type stuckStore struct {
	store.Folder
	once    *sync.Once
	started chan struct{} // closed when Put is called
}

func (s stuckStore) Put(ctx context.Context, name string, data []byte) error {
	first := false
	s.once.Do(func() { first = true; close(s.started) })
	if first {
		<-ctx.Done()
		return ctx.Err()
	}
	return s.Folder.Put(ctx, name, data)
}

func TestStuckCheckpointDoesNotBlock(t *testing.T) {
	t.Parallel()
	folder := stuckStore{store.Folder(t.TempDir()), new(sync.Once), make(chan struct{})}
	d, hook := newDelivery(folder)
	s := newTestOutput(t, params(t, string(folder.Folder), nil)).shard
	d.deliverCheckpoint(s())
	<-folder.started
	d.deliverCheckpoint(s())
	require.Equal(t, "A checkpoint was skipped, because the previous one is still being written.", hook.LastEntry().Message)
	last := s()
	last.Runner.State = shard.Finished
	require.NoError(t, d.deliverFinal(last), "the final shard must not wait for a checkpoint")
	got, err := shard.ReadFile(filepath.Join(string(folder.Folder), d.name))
	require.NoError(t, err)
	require.Equal(t, shard.Finished, got.Runner.State)
	require.Len(t, hook.AllEntries(), 1, "a checkpoint that the final shard replaces must cause no warning")
}

func TestCheckpointAfterASuspensionIsDiscarded(t *testing.T) {
	t.Parallel()
	folder, requested := t.TempDir(), make(chan struct{})
	d, hook := newDelivery(store.Folder(folder))
	d.mayReplace = func() bool { close(requested); return false }
	d.deliverCheckpoint(newTestOutput(t, params(t, folder, nil)).shard())
	<-requested
	d.mu.Lock() // waits until the checkpoint has ended
	defer d.mu.Unlock()
	require.NoFileExists(t, filepath.Join(folder, d.name))
	require.Empty(t, hook.AllEntries())
}

type brokenStore struct{ store.Folder }

func (brokenStore) Put(context.Context, string, []byte) error { return errors.New("it is broken") }

func TestRunContinuesAfterFailedCheckpoint(t *testing.T) {
	t.Parallel()
	d, hook := newDelivery(brokenStore{})
	s := newTestOutput(t, params(t, t.TempDir(), nil)).shard
	d.deliverCheckpoint(s())
	require.Eventually(t, func() bool { return hook.LastEntry() != nil }, time.Minute, time.Millisecond)
	require.Contains(t, hook.LastEntry().Message, "the run continues and will write the next one")
	require.ErrorContains(t, hook.LastEntry().Data[logrus.ErrorKey].(error), "it is broken")
}
