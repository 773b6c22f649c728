package sse

import "errors"

// chunkDecoder unwraps the chunked coding (RFC 9112, section 7.1) where the bytes
// lie. It keeps its place between calls, so any split of the input will do.
// Extensions and trailers are skipped.
type chunkDecoder struct {
	left  uint64 // of the current chunk; while its size is read, the size so far
	skip  uint16 // bytes of extension or trailer skipped so far
	state chunkState
}

type chunkState uint8

const (
	chunkSize      chunkState = iota // before the first digit
	chunkSizeMore                    // after it
	chunkExtension                   // up to LF
	chunkData
	chunkDataEnd  // CR or LF expected
	chunkDataLF   // LF expected
	chunkTrailer  // at the start of a trailer line
	chunkTrailing // inside one
)

const maxChunkSkip = 8 << 10

var errChunk = errors.New("malformed chunked response")

// decode moves the data in p to its front and returns how much there is, and
// whether the body's last chunk and its trailer have ended; what follows is ignored.
func (d *chunkDecoder) decode(p []byte) (n int, done bool, err error) {
	for i := 0; i < len(p); {
		if d.state == chunkData {
			m := int(min(d.left, uint64(len(p)-i)))
			copy(p[n:], p[i:i+m])
			n, i = n+m, i+m
			if d.left -= uint64(m); d.left == 0 {
				d.state = chunkDataEnd
			}
			continue
		}
		c := p[i]
		i++
		if done, err = d.step(c); done || err != nil {
			return n, done, err
		}
	}
	return n, false, nil
}

// step takes one byte that is not data.
func (d *chunkDecoder) step(c byte) (done bool, err error) {
	switch d.state {
	case chunkSize, chunkSizeMore:
		return false, d.size(c)
	case chunkExtension, chunkTrailing:
		switch {
		case c != '\n':
			return false, d.skipped()
		case d.state == chunkExtension:
			d.begin()
		default:
			d.state = chunkTrailer
		}
	case chunkDataEnd, chunkDataLF:
		switch {
		case c == '\n':
			d.state = chunkSize
		case c == '\r' && d.state == chunkDataEnd:
			d.state = chunkDataLF
		default:
			return false, errChunk
		}
	case chunkTrailer:
		if c != '\n' && c != '\r' {
			d.state = chunkTrailing
		}
		return c == '\n', nil
	}
	return false, nil
}

// size takes one byte of the line with a chunk's size.
func (d *chunkDecoder) size(c byte) error {
	digit := uint64(0)
	switch {
	case '0' <= c && c <= '9':
		digit = uint64(c - '0')
	case 'a' <= c && c <= 'f':
		digit = uint64(c-'a') + 10
	case 'A' <= c && c <= 'F':
		digit = uint64(c-'A') + 10
	case d.state == chunkSize: // no digit at all
		return errChunk
	case c == '\n':
		d.begin()
		return nil
	case c == '\r', c == ';', c == ' ', c == '\t':
		d.state = chunkExtension
		return nil
	default:
		return errChunk
	}
	if d.left >= 1<<58 {
		return errChunk
	}
	d.left = d.left<<4 | digit
	d.state = chunkSizeMore
	return nil
}

// begin starts the chunk whose size has been read; the one of size 0 is the last.
func (d *chunkDecoder) begin() {
	d.skip = 0
	d.state = chunkData
	if d.left == 0 {
		d.state = chunkTrailer
	}
}

func (d *chunkDecoder) skipped() error {
	if d.skip++; d.skip > maxChunkSkip {
		return errChunk
	}
	return nil
}
