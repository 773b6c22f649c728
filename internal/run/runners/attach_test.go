//go:build unix

package runners

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/shard"
)

// The test is not parallel. A process that another test forks keeps the pipe open until it calls exec, so another soak
// process would seem to be attached.
func TestAttachFollowsARunnerToItsEnd(t *testing.T) {
	reports := make(chan *shard.Progress, 1)
	c := Config{Dir: t.TempDir(), Survive: true, OnReport: func(_ int, p *shard.Progress) { reports <- p }}
	last := shard.Runner{Index: 1, PID: os.Getpid()}
	attach := func() (*Group, bool, error) {
		g := new(Group)
		running, err := g.Attach(c, last)
		return g, running, err
	}
	_, running, err := attach()
	require.NoError(t, err)
	require.False(t, running, "a runner that has not started must not count as running")

	reader, writer, orphan, err := c.openPipes(1)
	require.NoError(t, err)
	require.Zero(t, orphan)
	_, _, err = attach()
	require.ErrorIs(t, err, ErrAttached)
	require.NoError(t, reader.Close())

	g, running, err := attach()
	require.NoError(t, err)
	require.True(t, running)
	_, err = writer.WriteString("\n" + `{"open": 7}` + "\n")
	require.NoError(t, err)
	require.Equal(t, 7, (<-reports).Open)
	require.NoError(t, writer.Close())
	require.Nil(t, <-reports)
	require.NoError(t, g.Wait(t.Context(), t.Context()))
	require.Empty(t, g.Ends())

	_, running, err = attach()
	require.NoError(t, err)
	require.False(t, running, "a runner that has ended must not count as running")
}

func TestRunnerWithoutANamedPipeEndsWithSoak(t *testing.T) {
	t.Parallel()
	c := Config{Dir: t.TempDir() + "/none", Survive: true}
	reader, writer, orphan, err := c.openPipes(1)
	require.NoError(t, err)
	require.NotZero(t, orphan)
	require.NoError(t, reader.Close())
	require.NoError(t, writer.Close())
}
