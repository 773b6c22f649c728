package nginx

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPlainRequestsAreSpreadOverServers(t *testing.T) {
	t.Parallel()
	c := newConfig(t)
	c.addSockets(3)
	for n, socket := range c.Sockets {
		serve(t, "unix", socket, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, n+1) })
	}
	start(t, c)
	got := map[string]int{}
	const requests = 30
	for range requests {
		status, server := request(t, "GET", "http://"+c.Listen+"/default/services/x/echo?text=a", "")
		require.Equal(t, http.StatusOK, status)
		got[server]++
	}
	require.Equal(t, map[string]int{"1": requests / 3, "2": requests / 3, "3": requests / 3}, got)
}

// On two cores a backend whose handlers do not wait has at most two requests in progress. nginx counts the waiting
// requests too.
func TestRequestsInFlightInNginx(t *testing.T) {
	t.Parallel()
	c := newConfig(t)
	const concurrency = 20
	var arrived atomic.Int32
	release := make(chan struct{})
	serve(t, "unix", c.Sockets[0], func(w http.ResponseWriter, _ *http.Request) {
		if arrived.Add(1) == concurrency {
			close(release)
		}
		<-release
		w.Header().Set("X-In-Flight", "1000")
	})
	start(t, c)
	inFlight := make(chan string, concurrency)
	get := func() {
		resp, err := http.Get("http://" + c.Listen + "/default/services/x/status")
		if err != nil {
			inFlight <- err.Error()
			return
		}
		_ = resp.Body.Close()
		inFlight <- strings.Join(resp.Header.Values("X-In-Flight"), ", ")
	}
	for range concurrency {
		go get()
	}
	highest := ""
	for range concurrency {
		if n := <-inFlight; len(n) > len(highest) || len(n) == len(highest) && n > highest {
			highest = n
		}
	}
	require.Equal(t, strconv.Itoa(concurrency), highest)
	require.Eventually(t, func() bool { get(); return <-inFlight == "1" }, time.Minute, time.Millisecond, "completed requests must not be counted")
}

// nginx forwards the body while the client sends it, and writes no file.
func TestUploadIsNotBufferedByNginx(t *testing.T) {
	t.Parallel()
	c := newConfig(t)
	const half = 2 << 20 // more than the default limit of 1 MB
	arrived := make(chan int64)
	serve(t, "unix", c.Sockets[0], func(_ http.ResponseWriter, r *http.Request) {
		for range 2 {
			n, _ := io.CopyN(io.Discard, r.Body, half)
			arrived <- n
		}
	})
	start(t, c)
	body, send := io.Pipe()
	statuses := make(chan int, 1)
	go func() {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+c.Listen+"/default/upload", body)
		req.ContentLength = 2 * half
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			statuses <- 0
			return
		}
		_ = resp.Body.Close()
		statuses <- resp.StatusCode
	}()
	data := strings.Repeat("x", half)
	_, err := io.WriteString(send, data)
	require.NoError(t, err)
	require.EqualValues(t, half, <-arrived, "the first half must arrive before the client sends the second")
	files, err := filepath.Glob(filepath.Join(c.Dir, "body", "*"))
	require.NoError(t, err)
	require.Empty(t, files)
	_, err = io.WriteString(send, data)
	require.NoError(t, err)
	require.EqualValues(t, half, <-arrived)
	require.Equal(t, http.StatusOK, <-statuses)
	log, err := os.ReadFile(c.ErrorLog)
	require.NoError(t, err)
	require.NotContains(t, string(log), "buffered to a temporary file")
}
