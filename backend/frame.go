package main

import (
	"bytes"
	"strconv"
)

// A frame is one event on the wire: wire is the HTTP/1.1 chunk, and wire[from:to] is the bare event for HTTP/1.0. A
// frame is immutable, so any number of streams may share it.
type frame struct {
	wire     []byte
	from, to int
}

func newFrame(event []byte) frame {
	wire := make([]byte, 0, len(event)+12)
	wire = strconv.AppendInt(wire, int64(len(event)), 16)
	wire = append(wire, '\r', '\n')
	from := len(wire)
	wire = append(wire, event...)
	return frame{wire: append(wire, '\r', '\n'), from: from, to: from + len(event)}
}

func (f frame) bytes(chunked bool) []byte {
	if chunked {
		return f.wire
	}
	return f.wire[f.from:f.to]
}

// terminator ends a chunked body.
var terminator = []byte("0\r\n\r\n")

// The events of a noop and of a corrupted noop, without their heads.
const (
	noopData    = "data: 0\n\n"
	corruptData = "data: x\n\n"
)

// eventHead returns the head of an event: the id line, and a comment line with the time. sentMicros is in microseconds
// since 1970; 0 omits the comment line.
func eventHead(seq uint64, sentMicros int64) []byte {
	b := strconv.AppendUint([]byte("id: "), seq, 10)
	if sentMicros != 0 {
		b = append(b, "\n: sent="...)
		b = strconv.AppendInt(b, sentMicros, 10)
	}
	return append(b, '\n')
}

// eventBody returns the event of a message without the head. It splits data at CRLF, CR and LF into data lines, so that
// no part of data is read as another field. A client joins the lines with LF. name must be a valid name or empty.
func eventBody(name string, data []byte) []byte {
	b := make([]byte, 0, len(data)+len(name)+32)
	if name != "" {
		b = append(append(append(b, "event: "...), name...), '\n')
	}
	for {
		b = append(b, "data: "...)
		end := bytes.IndexAny(data, "\r\n")
		if end < 0 {
			b = append(b, data...)
			return append(b, '\n', '\n')
		}
		b = append(append(b, data[:end]...), '\n')
		if data[end] == '\r' && end+1 < len(data) && data[end+1] == '\n' {
			end++
		}
		data = data[end+1:]
	}
}

// A frameCache formats the frame of each sequence number at most once between two calls to begin. Many streams are at
// the same sequence number, so they share its frame.
type frameCache struct {
	sentAt int64 // microseconds since 1970; 0 for no timestamps
	body   []byte
	latest uint64
	frame  frame
	cache  map[uint64]frame
}

func (c *frameCache) begin(body []byte, sentMicros int64) {
	c.sentAt, c.body, c.latest = sentMicros, body, 0
	if c.cache == nil {
		c.cache = make(map[uint64]frame)
	}
	clear(c.cache)
}

func (c *frameCache) get(seq uint64) frame {
	if seq == c.latest {
		return c.frame
	}
	f, ok := c.cache[seq]
	if !ok {
		f = newFrame(append(eventHead(seq, c.sentAt), c.body...))
		c.cache[seq] = f
	}
	c.latest, c.frame = seq, f
	return f
}
