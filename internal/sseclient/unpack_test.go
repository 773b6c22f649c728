package sseclient

import (
	"io"
	"testing"

	"github.com/sse-soak/sse-soak/test/packing"
)

// FuzzUnpacking: whatever comes in whatever pieces, a stream ends, and its coroutine with it.
func FuzzUnpacking(f *testing.F) {
	for coding := range packing.Encoders {
		f.Add(coding, []byte(packing.Whole(coding, twoEvents)), uint8(3))
	}
	f.Fuzz(func(t *testing.T, coding string, data []byte, step uint8) {
		if packing.Encoders[coding] == nil {
			t.Skip()
		}
		left, rest := data, false
		u := unpack(coding, readFunc(func(p []byte) (int, error) {
			if rest = !rest; rest {
				return 0, errNotReady
			}
			if len(left) == 0 {
				return 0, io.EOF
			}
			n := copy(p[:min(len(p), int(step)+1)], left)
			left = left[n:]
			return n, nil
		}))
		defer u.stop()
		buf := make([]byte, int(step)+1)
		for sum, waits := 0, 0; sum < 4<<20; {
			n, err := u.Read(buf)
			sum += n
			if err == errNotReady {
				if waits++; waits > 2*len(data)+10 {
					t.Fatal("it waits for ever")
				}
			} else if err != nil {
				if _, again := u.Read(buf); again != err {
					t.Fatalf("it ended with %v, and then with %v", err, again)
				}
				return
			}
		}
	})
}
