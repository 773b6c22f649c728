package faulty

import "bytes"

// A splitter splits an event stream into parts whose concatenation equals the input. All lines of a stream must end
// like the first one: with \n, \r\n or \r.
type splitter struct {
	rest     []byte // an incomplete line or block
	complete int    // number of bytes of rest that belong to complete lines
	last     byte   // last byte of each line; 0: unknown
}

// lastOfLine returns the last byte of each line, or 0 if rest is too short: after \r, the next byte decides.
func (s *splitter) lastOfLine() byte {
	switch i := bytes.IndexAny(s.rest, "\r\n"); {
	case i < 0 || s.rest[i] == '\r' && i == len(s.rest)-1:
		return 0
	case s.rest[i] == '\r' && s.rest[i+1] != '\n':
		return '\r'
	}
	return '\n'
}

// add appends bytes, and calls emit for each complete block, including the blank line at its end. A comment before the
// first field of a block is a separate part, because it may be a heartbeat. So is a blank line after a blank line. A
// part is valid until emit returns.
func (s *splitter) add(p []byte, emit func(part []byte)) {
	s.rest = append(s.rest, p...)
	if s.last == 0 {
		s.last = s.lastOfLine()
	}
	start := 0
	for s.last != 0 {
		end := bytes.IndexByte(s.rest[s.complete:], s.last)
		if end < 0 {
			break
		}
		line := s.rest[s.complete : s.complete+end+1]
		first := s.complete == start
		s.complete += len(line)
		blank := len(bytes.TrimRight(line, "\r\n")) == 0
		if blank || first && line[0] == ':' {
			emit(s.rest[start:s.complete])
			start = s.complete
		}
	}
	s.rest = append(s.rest[:0], s.rest[start:]...)
	s.complete -= start
}

// end returns the incomplete last part of the stream.
func (s *splitter) end() []byte { return s.rest }
