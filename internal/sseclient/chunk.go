package sseclient

import "errors"

// A chunkState is the position in a body with the chunked coding (RFC 9112, section 7.1).
type chunkState uint8

const (
	chunkSize       chunkState = iota // before the first digit
	chunkSizeDigits                   // after the first digit
	chunkExtension                    // up to LF
	chunkData
	chunkDataEnd     // CR or LF expected
	chunkDataLF      // LF expected
	chunkTrailer     // at the start of a trailer line
	chunkTrailerLine // inside a trailer line
)

// maxSkippedBytes is the maximum size of an extension or of the trailer.
const maxSkippedBytes = 8 << 10

var errChunk = errors.New("malformed chunked response")

// dechunk decodes the next bytes of a body with the chunked coding. It moves the data to the front of p and returns
// the length of the data. done reports whether p contains the end of the trailer; dechunk sets excess if bytes follow
// the trailer. It skips extensions and the fields of the trailer.
func (f *framing) dechunk(p []byte) (n int, done bool, err error) {
	for i := 0; i < len(p); {
		if f.state == chunkData {
			m := int(min(f.remaining, uint64(len(p)-i))) // #nosec G115 -- at most len(p)
			copy(p[n:], p[i:i+m])
			n, i = n+m, i+m
			if f.remaining -= uint64(m); f.remaining == 0 { // #nosec G115 -- m is not negative
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

// step reads one byte that is not data. done reports whether c ends the trailer.
func (f *framing) step(c byte) (done bool, err error) {
	switch f.state {
	case chunkSize, chunkSizeDigits:
		return false, f.readSize(c)
	case chunkExtension, chunkTrailerLine:
		switch {
		case c != '\n':
			return false, f.countSkipped()
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
		if c == '\n' {
			return true, nil
		}
		if c != '\r' {
			f.state = chunkTrailerLine
		}
		return false, f.countSkipped()
	}
	return false, nil
}

// readSize reads one byte of a chunk size, or the byte that ends the size.
func (f *framing) readSize(c byte) error {
	digit := uint64(0)
	switch {
	case '0' <= c && c <= '9':
		digit = uint64(c - '0')
	case 'a' <= c && c <= 'f':
		digit = uint64(c-'a') + 10
	case 'A' <= c && c <= 'F':
		digit = uint64(c-'A') + 10
	case f.state == chunkSize: // no digit
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
	if f.remaining >= 1<<58 {
		return errChunk
	}
	f.remaining = f.remaining<<4 | digit
	f.state = chunkSizeDigits
	return nil
}

func (f *framing) beginChunk() {
	f.skippedBytes = 0
	f.state = chunkData
	if f.remaining == 0 {
		f.state = chunkTrailer
	}
}

func (f *framing) countSkipped() error {
	if f.skippedBytes++; f.skippedBytes > maxSkippedBytes {
		return errChunk
	}
	return nil
}
