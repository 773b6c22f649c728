package sseclient

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// A process has thousands of streams. One byte over a size class of Go's allocator costs 32 or 64 bytes.
func TestStreamFitsItsSizeClass(t *testing.T) {
	t.Parallel()
	if unsafe.Sizeof(uintptr(0)) == 8 {
		require.LessOrEqual(t, unsafe.Sizeof(Stream{}), uintptr(288))
	}
}
