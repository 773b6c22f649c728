package eventstream_test

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// This example reads the body of a response with the content type text/event-stream. io.EOF means that the body ended
// after a complete block, io.ErrUnexpectedEOF that it ended inside a block.
func Example() {
	body := strings.NewReader(": welcome\n\n" +
		"id: 1\ndata: 0\n\n" +
		"event: note\ndata: two\ndata: lines\n\n" +
		"data: cut off")

	parser := eventstream.New(body)
	var event eventstream.Event
	var err error
	for err = parser.Next(&event); err == nil; err = parser.Next(&event) {
		fmt.Printf("%q %q %q\n", event.Name, event.ID, event.Data)
	}
	fmt.Println(err, errors.Is(err, io.EOF))
	// Output:
	// "" "1" "0"
	// "note" "1" "two\nlines"
	// unexpected EOF false
}

// A client that reconnects keeps the parser, which has the last event ID and the reconnection time of the
// server.
func ExampleParser_Reset() {
	parser := eventstream.New(strings.NewReader("retry: 250\nid: 7\ndata: 0\n\n"))
	var event eventstream.Event
	for parser.Next(&event) == nil {
	}
	wait, _ := parser.ReconnectionTime()
	fmt.Printf("after %v, Last-Event-ID: %s\n", wait, parser.LastEventID())

	parser.Reset(strings.NewReader("id: 8\ndata: 0\n\n"), eventstream.DefaultLimit)
	for parser.Next(&event) == nil {
		fmt.Printf("%s\n", event.ID)
	}
	// Output:
	// after 250ms, Last-Event-ID: 7
	// 8
}
