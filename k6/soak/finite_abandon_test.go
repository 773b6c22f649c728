package soak

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/test/sockets"
)

// The client abandons each response after its second chunk. Later chunks do not count, even if they arrive in the same
// read.
func TestFiniteAbandonsAfterTheChunk(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		got := finiteOf(t, startModel(t), "openai-chat", `{rate: 50, concurrency: 0, abandon: 1, prompts: ["soak id={id} fault=burst"]}`)
		require.Equal(t, map[ledger.ResponseState]int64{ledger.ResponseAbandoned: 25}, got.States)
		require.EqualValues(t, 2*25, got.Chunks.Received)
		require.EqualValues(t, 2*25, got.AbandonedChunks)
	})
}

// For fin the server reads the end of the connection, for reset an error, and for vanish nothing.
func TestFiniteAbandonsByFINResetOrSilence(t *testing.T) {
	t.Parallel()
	const silence = "silence"
	for kind, want := range map[string]string{"fin": io.EOF.Error(), "reset": syscall.ECONNRESET.Error(), "vanish": silence} {
		ends := make(chan string, 5) // one per request
		address := sockets.Serve(t, func(conn net.Conn) {
			request, err := http.ReadRequest(bufio.NewReader(conn))
			if err != nil {
				return // the test has ended
			}
			_, _ = io.Copy(io.Discard, request.Body)
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"+strings.Repeat("data: a\n\n", 3))
			if kind == "vanish" { // other kinds end the read
				_ = conn.SetReadDeadline(time.Now().Add(2 * time.Second))
			}
			switch _, err = conn.Read(make([]byte, 1)); {
			case errors.Is(err, os.ErrDeadlineExceeded):
				ends <- silence
			case errors.Is(err, syscall.ECONNRESET):
				ends <- syscall.ECONNRESET.Error()
			default:
				ends <- fmt.Sprint(err)
			}
		})
		got := finiteOf(t, "http://"+address, answers, `{rate: 10, concurrency: 0, abandon: 1, abandonBy: '`+kind+`'}`)
		require.Equal(t, map[ledger.ResponseState]int64{ledger.ResponseAbandoned: 5}, got.States, kind)
		require.EqualValues(t, 2*5, got.AbandonedChunks, kind)
		for range 5 {
			require.Equal(t, want, <-ends, kind)
		}
	}
}
