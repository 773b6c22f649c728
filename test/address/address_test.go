package address

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Tests that run side by side start programs that do not listen yet when the next one looks for an address.
func TestAddressesAreUnique(t *testing.T) {
	t.Parallel()
	given := map[string]bool{}
	for range 400 {
		address := For(t)
		require.False(t, given[address], address)
		given[address] = true
	}
}
