package service

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	names := []string{"on", "out", "connections", "seconds", "seq", "storm"}
	for name, want := range map[string]string{
		"conections": "connections", "Conectoins": "connections", "sceonds": "seconds", "sqe": "seq", "stom": "storm", "oout": "out",
		"json": "", "o": "", "interval": "", "connect": "",
	} {
		require.Equal(t, want, Nearest(name, names), name)
	}
}
