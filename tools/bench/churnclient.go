package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/sse-soak/sse-soak/internal/http1"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// churnAtATime is how many streams the churn client opens and ends at a time.
const churnAtATime = 50

// churnOptions are the argument of the churn client, as JSON.
type churnOptions struct {
	Address string        // host:port of the service
	Prefix  string        // of the device ids
	Token   string        // for DELETE
	Delete  bool          // ask the service to end each stream, in place of hanging up
	For     time.Duration // no stream is begun after that,
	Most    int64         // or when so many have been
}

// churnResult is what the churn client prints at its end.
type churnResult struct {
	Seconds float64          // from the first to the end of the last
	Connect *shard.Histogram // from the dial to the end of the headers
	End     *shard.Histogram // from the DELETE to the end of its answer
	Errors  map[string]int
}

// churnCommand opens streams and ends them at once, as fast as the service and this machine allow.
func churnCommand(ctx context.Context) *cobra.Command {
	return &cobra.Command{
		Use: "churn-client", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			var o churnOptions
			if err := json.Unmarshal([]byte(args[0]), &o); err != nil {
				return err
			}
			return json.NewEncoder(os.Stdout).Encode(churn(ctx, o))
		},
	}
}

func churn(ctx context.Context, o churnOptions) churnResult {
	ctx, stop := context.WithTimeout(ctx, o.For)
	defer stop()
	sum, begun := churnResult{Connect: shard.NewHistogram(), End: shard.NewHistogram(), Errors: map[string]int{}}, time.Now()
	var made atomic.Int64
	more := func() bool { return ctx.Err() == nil && made.Add(1) <= o.Most }
	var mu sync.Mutex
	var all sync.WaitGroup
	for n := range churnAtATime {
		all.Go(func() {
			c := churner{o: o, n: n, connect: shard.NewHistogram(), end: shard.NewHistogram()}
			errs := c.run(more)
			mu.Lock()
			defer mu.Unlock()
			sum.Connect.Merge(c.connect)
			sum.End.Merge(c.end)
			for _, err := range errs {
				sum.Errors[withoutAddresses(err)]++
			}
		})
	}
	all.Wait()
	sum.Seconds = time.Since(begun).Seconds()
	return sum
}

// withoutAddresses is what an error says, alike for all connections.
func withoutAddresses(err error) string {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Op + ": " + op.Err.Error()
	}
	return err.Error()
}

// A churner opens and ends one stream after the other.
type churner struct {
	o            churnOptions
	n, dials     int
	connect, end *shard.Histogram
	asks         *http1.Conn // for its DELETEs, which share a connection
}

// run goes on while there are more to open, or until nothing works.
func (c *churner) run(more func() bool) (errs []error) {
	const enough = 10
	for i := 0; len(errs) < enough && more(); i++ {
		if err := c.once(fmt.Sprintf("%s%d-%d", c.o.Prefix, c.n, i)); err != nil {
			errs = append(errs, err)
		}
	}
	if c.asks != nil {
		_ = c.asks.Close()
	}
	return errs
}

// dial connects from one after the other of the churner's own addresses, and closes by RST: what ends by FIN keeps its port for a minute,
// and its place in the table of a machine that tracks connections for two, and both would be used up within seconds.
func (c *churner) dial() (*http1.Conn, error) {
	const addresses = 100
	c.dials++
	dialer := net.Dialer{Timeout: goodbye, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, byte(1+c.dials%addresses), byte(1+c.n))}}
	conn, err := dialer.Dial("tcp", c.o.Address)
	if err != nil {
		return nil, err
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // without it the end is only slower to be forgotten
	}
	return http1.NewConn(conn, conn, http1.MaxHead), conn.SetDeadline(time.Now().Add(time.Minute))
}

// once opens a stream and ends it.
func (c *churner) once(id string) error {
	begun := time.Now()
	conn, err := c.dial()
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close()
	if _, err = fmt.Fprintf(conn, "GET /event/connect?id=%s HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\n\r\n", id, c.o.Address); err != nil {
		return fmt.Errorf("ask for a stream: %w", err)
	}
	resp, err := conn.Head(nil) //nolint:bodyclose // a stream ends with its connection; Close would wait for it
	if err != nil {
		return fmt.Errorf("read the headers of a stream: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("a stream was refused: %s", resp.Status)
	}
	c.connect.Record(time.Since(begun))
	if !c.o.Delete {
		return nil // and hang up
	}
	if err := c.ask(id); err != nil {
		return fmt.Errorf("DELETE: %w", err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return fmt.Errorf("read a stream to its end: %w", err)
	}
	return nil
}

// ask sends a DELETE and reads its answer.
func (c *churner) ask(id string) error {
	begun := time.Now()
	if c.asks == nil {
		conn, err := c.dial()
		if err != nil {
			return err
		}
		c.asks = conn
	}
	if err := c.asks.SetDeadline(begun.Add(time.Minute)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(c.asks, "DELETE /event/forcedisconnect?id=%s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", id, c.o.Address, c.o.Token); err != nil {
		return err
	}
	resp, err := c.asks.Head(&http.Request{Method: http.MethodDelete})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it was answered with %s", resp.Status)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	c.end.Record(time.Since(begun))
	return nil
}
