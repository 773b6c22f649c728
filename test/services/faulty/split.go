package faulty

import "bytes"

// A splitter splits a stream of events without changing a byte: its parts, joined, equal its input. All lines of a
// stream end like its first one: with \n, \r\n or \r.
type splitter struct {
	rest  []byte // a line or a block that is not whole yet
	lines int    // bytes of rest that are whole lines
	last  byte   // of each line; 0: not known yet
}

// lastOfLine finds out how lines end. It returns 0 until the byte after the first \r is there.
func (s *splitter) lastOfLine() byte {
	switch i := bytes.IndexAny(s.rest, "\r\n"); {
	case i < 0 || s.rest[i] == '\r' && i == len(s.rest)-1:
		return 0
	case s.rest[i] == '\r' && s.rest[i+1] != '\n':
		return '\r'
	}
	return '\n'
}

// add appends bytes, and calls emit for each complete block, with the blank line at its end. A comment before the
// first field of a block, and a blank line after a blank line, are emitted separately and at once: a heartbeat may be
// no more than that. A part is valid until emit returns.
func (s *splitter) add(p []byte, emit func(part []byte)) {
	s.rest = append(s.rest, p...)
	if s.last == 0 {
		s.last = s.lastOfLine()
	}
	begin := 0
	for s.last != 0 {
		end := bytes.IndexByte(s.rest[s.lines:], s.last)
		if end < 0 {
			break
		}
		line := s.rest[s.lines : s.lines+end+1]
		first := s.lines == begin
		s.lines += len(line)
		blank := len(bytes.TrimRight(line, "\r\n")) == 0
		if blank || first && line[0] == ':' {
			emit(s.rest[begin:s.lines])
			begin = s.lines
		}
	}
	s.rest = append(s.rest[:0], s.rest[begin:]...)
	s.lines -= begin
}

// end returns the incomplete last part of the stream.
func (s *splitter) end() []byte { return s.rest }
