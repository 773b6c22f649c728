package sseclient

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/packing"
)

// FuzzDecompressor checks that a stream and its coroutine end for any input in pieces of any size.
func FuzzDecompressor(f *testing.F) {
	for coding := range packing.Encoders {
		f.Add(coding, []byte(packing.Compress(coding, twoEvents)), uint8(3))
	}
	f.Fuzz(func(t *testing.T, coding string, data []byte, step uint8) {
		if packing.Encoders[coding] == nil {
			t.Skip()
		}
		unread, blocked := data, false
		d := newDecompressor(coding, readFunc(func(p []byte) (int, error) {
			if blocked = !blocked; blocked {
				return 0, errNotReady
			}
			if len(unread) == 0 {
				return 0, io.EOF
			}
			n := copy(p[:min(len(p), int(step)+1)], unread)
			unread = unread[n:]
			return n, nil
		}))
		defer d.stop()
		buf := make([]byte, int(step)+1)
		for sum, waits := 0, 0; sum < 4<<20; {
			n, err := d.Read(buf)
			sum += n
			if err == errNotReady {
				if waits++; waits > 2*len(data)+10 {
					t.Fatal("the decompressor returns neither data nor an error")
				}
			} else if err != nil {
				if _, repeated := d.Read(buf); repeated != err {
					t.Fatalf("got %v, then %v; want the same error again", err, repeated)
				}
				return
			}
		}
	})
}

// A decoder may return neither data nor an error, for example for an end mark that arrives alone.
func TestDecompressorReadsFlushedDataAndTheEnd(t *testing.T) {
	t.Parallel()
	for coding, start := range packing.Encoders {
		var wire bytes.Buffer
		atEnd := errNotReady
		d := newDecompressor(coding, readFunc(func(p []byte) (n int, err error) {
			if n, err = wire.Read(p); err == io.EOF {
				err = atEnd
			}
			return n, err
		}))
		t.Cleanup(d.stop)
		z := start(&wire)
		for _, text := range []string{"data: 0\n\n", "", "data: 1\n\n"} {
			_, _ = io.WriteString(z, text)
			require.NoError(t, z.Flush())
			got, err := io.ReadAll(d)
			require.Equal(t, errNotReady, err, coding)
			require.Equal(t, text, string(got), coding)
		}
		require.NoError(t, z.Close())
		atEnd = io.EOF
		got, err := io.ReadAll(d)
		require.NoError(t, err, coding)
		require.Empty(t, got, coding)
	}
}
