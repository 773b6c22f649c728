package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
)

// rawBuffer is what each connection of the raw client reads into.
const rawBuffer = 512

// goodbye is how long the service may take to close a stream that the client has ended.
const goodbye = 5 * time.Second

// dialsAtATime bounds connects under way: the accept queue is not what is measured.
const dialsAtATime = 100

// rawOptions are the argument of the raw client, as JSON.
type rawOptions struct {
	Address     string // host:port of the service
	Connections int
	Prefix      string // of the device ids
	Stamps      bool   // record when each noop arrived
	Epoll       bool   // by one epoll loop, which only counts noops
	Ledgers     bool   // by one that keeps a ledger of each connection, as the soak does
}

// rawResult is what the raw client prints when it is asked to end.
type rawResult struct {
	Received uint64
	Missed   uint64         // numbers skipped
	Kernel   []float64      // see spreads
	Reader   []float64      //
	Errors   map[string]int // of connections that could not be held
}

// A rawConn is the least a client needs to know of a connection.
type rawConn struct {
	conn                   net.Conn
	received, missed, last uint64
	arrivals               []arrival // with stamps
	err                    error
}

// rawCommand is the yardstick of the runner: the least Go program that holds connections,
// reads their noops and counts them, by a goroutine for each or by one epoll loop.
func rawCommand(ctx context.Context) *cobra.Command {
	return &cobra.Command{
		Use: "raw-client", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			var o rawOptions
			if err := json.Unmarshal([]byte(args[0]), &o); err != nil {
				return err
			}
			if !o.Epoll && !o.Ledgers {
				return json.NewEncoder(os.Stdout).Encode(holdRaw(ctx, o))
			}
			result, err := holdEpoll(ctx, o)
			if err != nil {
				return err
			}
			return json.NewEncoder(os.Stdout).Encode(result)
		},
	}
}

// request asks for the nth stream.
func (o rawOptions) request(n int) []byte {
	return fmt.Appendf(nil, "GET /event/connect?id=%s%d HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\n\r\n", o.Prefix, n, o.Address)
}

// holdRaw opens all connections and reads them until ctx ends.
func holdRaw(ctx context.Context, o rawOptions) rawResult {
	conns := make([]rawConn, o.Connections)
	dialer := net.Dialer{Timeout: 20 * time.Second}
	var dials errgroup.Group
	dials.SetLimit(dialsAtATime)
	var readers sync.WaitGroup
	for i := range conns {
		dials.Go(func() error {
			c := &conns[i]
			if c.conn, c.err = dialer.DialContext(ctx, "tcp", o.Address); c.err != nil {
				return c.err
			}
			_, c.err = c.conn.Write(o.request(i))
			// On a stack of its own: that of the dial has grown and would be counted.
			readers.Go(func() { c.read(o.Stamps) })
			return nil
		})
	}
	<-ctx.Done()
	_ = dials.Wait()
	// Half-closed: the service sees that we go and closes, and what it wrote before is read.
	for i := range conns {
		if half, ok := conns[i].conn.(*net.TCPConn); ok {
			_ = half.CloseWrite()
			_ = half.SetReadDeadline(time.Now().Add(goodbye))
		}
	}
	readers.Wait()
	return summarize(conns, o.Stamps)
}

// read reads a stream to its end.
func (c *rawConn) read(stamps bool) {
	defer c.conn.Close()
	var from io.Reader = c.conn
	var clock *stampedReader
	if stamps {
		if clock, c.err = newStampedReader(c.conn); c.err != nil {
			return
		}
		from = clock
	}
	lines := bufio.NewReaderSize(from, rawBuffer)
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return
		}
		if c.line(line) && clock != nil {
			c.arrivals = append(c.arrivals, clock.last)
		}
	}
}

var (
	idField = []byte("id: ")
	noop    = []byte("data: 0\n")
)

// line takes one line of the stream and says whether it was a noop. Sizes of chunks and
// headers pass by as lines without meaning.
func (c *rawConn) line(line []byte) bool {
	if id, ok := bytes.CutPrefix(line, idField); ok {
		n, _ := strconv.ParseUint(string(bytes.TrimSpace(id)), 10, 64)
		if n > c.last+1 {
			c.missed += n - c.last - 1
		}
		c.last = n
		return false
	}
	if !bytes.Equal(line, noop) {
		return false
	}
	c.received++
	return true
}

func summarize(conns []rawConn, stamps bool) rawResult {
	r := rawResult{Errors: map[string]int{}}
	for i := range conns {
		c := &conns[i]
		r.Received += c.received
		r.Missed += c.missed
		if c.err != nil {
			r.Errors[c.err.Error()]++
		}
	}
	if stamps {
		r.Kernel, r.Reader = spreads(conns)
	}
	return r
}

// An arrival is when one noop came in, in nanoseconds since 1970: at the socket by the
// kernel's stamp, which no load on the reader can delay, and at the reader.
type arrival struct{ kernel, reader int64 }

// A round is the first and the last arrival of one noop on all connections.
type round struct {
	noops       int
	first, last arrival
}

// spreads says of each round of noops that reached every connection how many seconds there
// were from its first arrival to its last, by the kernel's clock and by the readers'.
func spreads(conns []rawConn) (kernel, reader []float64) {
	start := int64(math.MaxInt64)
	for i := range conns {
		for _, a := range conns[i].arrivals {
			start = min(start, a.kernel)
		}
	}
	start -= int64(400 * time.Millisecond) // rounds are a second apart: between them it is quiet
	rounds := map[int64]*round{}
	for i := range conns {
		for _, a := range conns[i].arrivals {
			key := (a.kernel - start) / int64(time.Second)
			if rounds[key] == nil {
				rounds[key] = &round{first: a, last: a}
			}
			r := rounds[key]
			r.noops++
			r.first = arrival{min(r.first.kernel, a.kernel), min(r.first.reader, a.reader)}
			r.last = arrival{max(r.last.kernel, a.kernel), max(r.last.reader, a.reader)}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(rounds)) {
		if r := rounds[key]; r.noops == len(conns) {
			kernel = append(kernel, float64(r.last.kernel-r.first.kernel)/1e9)
			reader = append(reader, float64(r.last.reader-r.first.reader)/1e9)
		}
	}
	return kernel, reader
}
