package address

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Tests that run side by side start programs that do not listen yet when the next one looks for an address.
func TestAddressesAreUnique(t *testing.T) {
	t.Parallel()
	addresses := map[string]bool{}
	for range 400 {
		address := Reserve(t)
		require.False(t, addresses[address], address)
		addresses[address] = true
	}
}
