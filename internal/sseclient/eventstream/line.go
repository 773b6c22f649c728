package eventstream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
)

// readLine returns the next line in the buffer, without the CRLF, LF or CR at its end (section 9.2.5). If the line is
// incomplete, readLine moves its bytes to p.line, and ok is false.
func (p *Parser) readLine() (line []byte, ok bool, err error) {
	if p.pos == p.end {
		return nil, false, nil
	}
	if p.skipLF {
		p.skipLF = false
		if p.buf[p.pos] == '\n' {
			p.pos++
		}
	}
	unread := p.buf[p.pos:p.end]
	if len(unread) == 0 {
		return nil, false, nil
	}
	n := bytes.IndexByte(unread, '\n')
	head := unread
	if n >= 0 {
		head = unread[:n]
	}
	if cr := bytes.IndexByte(head, '\r'); cr >= 0 {
		n = cr
		p.skipLF = true
	}
	isComplete := n >= 0
	if !isComplete {
		n = len(unread)
	}
	if p.skipsComment || len(p.line)+n > int(p.limit) {
		return p.skipComment(unread, n, isComplete)
	}
	line = unread[:n]
	if !isComplete || len(p.line) > 0 {
		p.line = p.extend(p.line, line)
		line = p.line
	}
	p.pos += n
	if !isComplete {
		return nil, false, nil
	}
	p.pos++ // the LF or CR
	return p.withoutBOM(line), true, nil
}

// skipComment reads a comment line over the limit as an empty comment. Any other line over the limit is an error.
func (p *Parser) skipComment(unread []byte, n int, isComplete bool) (line []byte, ok bool, err error) {
	if !p.skipsComment {
		const enough = len(byteOrderMark + ":")
		start := slices.Concat(p.line[:min(len(p.line), enough)], unread[:min(n, enough)])
		if !bytes.HasPrefix(p.withoutBOM(start), []byte{':'}) {
			return nil, false, fmt.Errorf("%w of %d bytes (one line)", ErrTooLong, p.limit)
		}
		p.line = append(p.recycle(p.line), ':')
	}
	p.skipsComment = !isComplete
	p.pos += n
	if isComplete {
		p.pos++
	}
	return p.line, isComplete, nil
}

const byteOrderMark = "\xEF\xBB\xBF"

// withoutBOM strips one U+FEFF from the first line of the stream.
func (p *Parser) withoutBOM(line []byte) []byte {
	if !p.bomDone {
		p.bomDone = true
		line = bytes.TrimPrefix(line, []byte(byteOrderMark))
	}
	return line
}

// fill reads bytes into the empty buffer. It returns io.ErrUnexpectedEOF if the stream ends inside a line or an event,
// and io.ErrNoProgress if the reader repeatedly returns nothing.
func (p *Parser) fill() error {
	if p.buf == nil {
		p.buf = make([]byte, readBuffer)
	}
	p.pos, p.end = 0, 0
	for range 100 {
		err := p.err
		if err == nil {
			p.end, err = p.r.Read(p.buf)
		}
		p.err = nil
		if p.end > 0 {
			p.err = err
			return nil
		}
		if errors.Is(err, io.EOF) && (p.hasEventField || p.unfinishedLine()) {
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

func (p *Parser) unfinishedLine() bool {
	return len(p.line) > 0 && (p.bomDone || string(p.line) != byteOrderMark)
}
