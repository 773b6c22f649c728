package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"
)

// rawBuffer is what each connection of the raw client reads into.
const rawBuffer = 512

// goodbye is how long the service may take to close a stream that the client has ended.
const goodbye = 5 * time.Second

// rawOptions are the flags of the raw client.
type rawOptions struct {
	address     string
	connections int
	prefix      string
	source      string // local address; one address has only so many ports
	dials       int    // at a time
	stamps      bool   // record when each noop arrived
}

// rawResult is what the raw client prints when it is asked to end.
type rawResult struct {
	Received uint64         `json:"received"`
	Missed   uint64         `json:"missed"` // numbers skipped
	Failed   int            `json:"failed"` // connections that could not be held
	Kernel   []float64      `json:"kernel_spread_s,omitempty"`
	Reader   []float64      `json:"reader_spread_s,omitempty"`
	Errors   map[string]int `json:"errors,omitempty"`
}

// A rawConn is the least a client needs to know of a connection.
type rawConn struct {
	received, missed, last uint64
	arrivals               []arrival // with stamps
	err                    error
}

// rawCommand is the yardstick of the runner: the least Go program that holds connections,
// reads their noops and counts them.
func rawCommand() *cobra.Command {
	var o rawOptions
	cmd := &cobra.Command{
		Use: "raw-client", Short: "Hold connections and count noops with as little as possible, until interrupted",
		SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return json.NewEncoder(os.Stdout).Encode(holdRaw(cmd.Context(), o))
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.address, "address", "127.0.0.1:8080", "host:port of the service")
	f.IntVar(&o.connections, "connections", 1000, "how many to hold")
	f.StringVar(&o.prefix, "prefix", "raw-", "of the device ids")
	f.StringVar(&o.source, "source", "127.0.0.1", "local address to connect from")
	f.IntVar(&o.dials, "dials", 100, "connects at a time")
	f.BoolVar(&o.stamps, "stamps", false, "tell the first to the last arrival of each round of noops")
	return cmd
}

// holdRaw opens all connections and reads them until ctx ends.
func holdRaw(ctx context.Context, o rawOptions) rawResult {
	conns := make([]rawConn, o.connections)
	open := make([]net.Conn, o.connections)
	places := make(chan struct{}, o.dials)
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(o.source)}, Timeout: 20 * time.Second}
	var dials, readers sync.WaitGroup
	for i := range conns {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		dials.Go(func() {
			conn, err := dialer.DialContext(ctx, "tcp", o.address)
			if err == nil {
				_, err = fmt.Fprintf(conn, "GET /event/connect?id=%s%d HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\n\r\n", o.prefix, i, o.address)
			}
			<-places
			if err != nil {
				conns[i].err = err
				return
			}
			open[i] = conn
			// On a stack of its own: that of the dial has grown and would be counted.
			readers.Go(func() { conns[i].read(conn, o.stamps) })
		})
	}
	<-ctx.Done()
	dials.Wait()
	// Half-closed: the service sees that we go and closes, and what it wrote before is read.
	for _, conn := range open {
		if half, ok := conn.(*net.TCPConn); ok {
			_ = half.CloseWrite()
			_ = half.SetReadDeadline(time.Now().Add(goodbye))
		}
	}
	readers.Wait()
	for _, conn := range open {
		if conn != nil {
			_ = conn.Close()
		}
	}
	return summarize(conns, o.stamps)
}

// read reads a stream to its end.
func (c *rawConn) read(conn net.Conn, stamps bool) {
	var from io.Reader = conn
	var clock *stampedReader
	if stamps {
		var err error
		if clock, err = newStampedReader(conn); err != nil {
			c.err = err
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
		var n uint64
		for _, b := range id {
			if b < '0' || b > '9' {
				break
			}
			n = n*10 + uint64(b-'0')
		}
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
	var r rawResult
	for i := range conns {
		c := &conns[i]
		r.Received += c.received
		r.Missed += c.missed
		if c.err != nil {
			r.Failed++
			if r.Errors == nil {
				r.Errors = make(map[string]int)
			}
			r.Errors[c.err.Error()]++
		}
	}
	if stamps {
		r.Kernel, r.Reader = spreads(conns)
	}
	return r
}
