package eventstream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// readLine returns the next line in the buffer without its end (section 9.2.5: CRLF, LF or CR). If the line is
// incomplete, readLine moves its bytes to p.line and ok is false.
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
	isWhole := n >= 0
	if !isWhole {
		n = len(unread)
	}
	if p.skipsComment || len(p.line)+n > int(p.limit) {
		return p.skipComment(unread, n, isWhole)
	}
	line = unread[:n]
	if !isWhole || len(p.line) > 0 {
		p.line = p.extend(p.line, line)
		line = p.line
	}
	p.pos += n
	if !isWhole {
		return nil, false, nil
	}
	p.pos++ // the LF or CR
	return p.withoutBOM(line), true, nil
}

// skipComment reads a comment line over the limit as an empty comment. Any other line over the limit is an error.
func (p *Parser) skipComment(unread []byte, n int, isWhole bool) (line []byte, ok bool, err error) {
	if !p.skipsComment {
		begin := unread
		if len(p.line) > 0 {
			begin = p.line
		}
		if begin = p.withoutBOM(begin); begin[0] != ':' {
			return nil, false, fmt.Errorf("%w of %d bytes (one line)", ErrTooLong, p.limit)
		}
		p.line = append(p.recycle(p.line), ':')
	}
	p.skipsComment = !isWhole
	p.pos += n
	if isWhole {
		p.pos++
	}
	return p.line, isWhole, nil
}

// withoutBOM strips one U+FEFF from the first line of the stream.
func (p *Parser) withoutBOM(line []byte) []byte {
	if !p.bomDone {
		p.bomDone = true
		line = bytes.TrimPrefix(line, []byte("\xEF\xBB\xBF"))
	}
	return line
}

// fill reads once.
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
		if errors.Is(err, io.EOF) && (p.event || p.unfinishedLine()) {
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// unfinishedLine reports whether a line has started; a lone byte order mark does not count.
func (p *Parser) unfinishedLine() bool {
	return len(p.line) > 0 && (p.bomDone || string(p.line) != "\xEF\xBB\xBF")
}
