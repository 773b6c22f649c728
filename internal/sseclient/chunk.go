package sseclient

import "errors"

// chunkState is the place in a body of the chunked coding (RFC 9112, section 7.1).
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

// dechunk unwraps the chunked coding where the bytes lie: it moves the data in p to its front and
// returns how much there is, and whether the body's last chunk and its trailer have ended; what
// follows is excess. It keeps its place between calls, so any split of the input will do.
// Extensions and trailers are skipped.
func (f *framing) dechunk(p []byte) (n int, done bool, err error) {
	for i := 0; i < len(p); {
		if f.state == chunkData {
			m := int(min(f.remain, uint64(len(p)-i))) // #nosec G115 -- at most len(p)
			copy(p[n:], p[i:i+m])
			n, i = n+m, i+m
			if f.remain -= uint64(m); f.remain == 0 { // #nosec G115 -- m is not negative
				f.state = chunkDataEnd
			}
			continue
		}
		c := p[i]
		i++
		if done, err = f.step(c); done || err != nil {
			f.excess = i < len(p)
			return n, done, err
		}
	}
	return n, false, nil
}

// step takes one byte that is not data.
func (f *framing) step(c byte) (done bool, err error) {
	switch f.state {
	case chunkSize, chunkSizeMore:
		return false, f.size(c)
	case chunkExtension, chunkTrailing:
		switch {
		case c != '\n':
			return false, f.skipped()
		case f.state == chunkExtension:
			f.beginChunk()
		default:
			f.state = chunkTrailer
		}
	case chunkDataEnd, chunkDataLF:
		switch {
		case c == '\n':
			f.state = chunkSize
		case c == '\r' && f.state == chunkDataEnd:
			f.state = chunkDataLF
		default:
			return false, errChunk
		}
	case chunkTrailer:
		if c != '\n' && c != '\r' {
			f.state = chunkTrailing
		}
		return c == '\n', nil
	}
	return false, nil
}

// size takes one byte of the line with a chunk's size.
func (f *framing) size(c byte) error {
	digit := uint64(0)
	switch {
	case '0' <= c && c <= '9':
		digit = uint64(c - '0')
	case 'a' <= c && c <= 'f':
		digit = uint64(c-'a') + 10
	case 'A' <= c && c <= 'F':
		digit = uint64(c-'A') + 10
	case f.state == chunkSize: // no digit at all
		return errChunk
	case c == '\n':
		f.beginChunk()
		return nil
	case c == '\r', c == ';', c == ' ', c == '\t':
		f.state = chunkExtension
		return nil
	default:
		return errChunk
	}
	if f.remain >= 1<<58 {
		return errChunk
	}
	f.remain = f.remain<<4 | digit
	f.state = chunkSizeMore
	return nil
}

// beginChunk starts the chunk whose size has been read; the one of size 0 is the last.
func (f *framing) beginChunk() {
	f.skip = 0
	f.state = chunkData
	if f.remain == 0 {
		f.state = chunkTrailer
	}
}

func (f *framing) skipped() error {
	if f.skip++; f.skip > maxChunkSkip {
		return errChunk
	}
	return nil
}
