package sseclient

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// There are thousands of these: one byte more than a size class of Go's takes the next one, 32 or 64 bytes larger.
func TestStreamFitsItsSizeClass(t *testing.T) {
	t.Parallel()
	if unsafe.Sizeof(uintptr(0)) == 8 {
		require.LessOrEqual(t, unsafe.Sizeof(Stream{}), uintptr(384))
	}
}
