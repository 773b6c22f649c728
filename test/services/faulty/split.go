package faulty

import "bytes"

// splitter takes a stream of events apart without changing a byte: joined, what it gives is what it was given. It knows
// the line ends \n and \r\n; the standard's third, a lone \r, no service here sends.
type splitter struct {
	rest  []byte // a line or a block that is not whole yet
	lines int    // bytes of rest that are whole lines
}

// add takes bytes as they came, and calls whole for each block that they complete, with the blank line at its end. A
// comment before the first field of a block, and a blank line after a blank line, come on their own as soon as they are
// there: a heartbeat may be no more than that. What whole is given is valid until it returns.
func (s *splitter) add(p []byte, whole func(part []byte)) {
	s.rest = append(s.rest, p...)
	begin := 0
	for {
		end := bytes.IndexByte(s.rest[s.lines:], '\n')
		if end < 0 {
			break
		}
		line := s.rest[s.lines : s.lines+end+1]
		first := s.lines == begin
		s.lines += len(line)
		blank := len(bytes.TrimRight(line, "\r\n")) == 0
		if blank || first && line[0] == ':' {
			whole(s.rest[begin:s.lines])
			begin = s.lines
		}
	}
	s.rest = append(s.rest[:0], s.rest[begin:]...)
	s.lines -= begin
}

// end gives what the stream ended in the middle of.
func (s *splitter) end() []byte { return s.rest }
