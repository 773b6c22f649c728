package address

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Concurrent tests get different addresses, although their programs do not listen yet.
func TestAddressesAreUnique(t *testing.T) {
	t.Parallel()
	addresses := map[string]bool{}
	for range 400 {
		address := Reserve(t)
		require.False(t, addresses[address], "%s must be reserved only once", address)
		addresses[address] = true
	}
}
