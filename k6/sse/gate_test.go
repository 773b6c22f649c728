package sse

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheGateLetsSoManyInAtATime(t *testing.T) {
	t.Parallel()
	g := make(dialGate, 2)
	require.True(t, g.enter(t.Context()))
	require.True(t, g.enter(t.Context()))
	over, cancel := context.WithCancel(t.Context())
	cancel()
	require.False(t, g.enter(over), "a third one")
	third := make(chan bool)
	go func() { third <- g.enter(t.Context()) }()
	g.leave()
	require.True(t, <-third, "its turn came")
}
