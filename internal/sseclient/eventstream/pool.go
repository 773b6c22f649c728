package eventstream

import "sync"

// pooled is how large the buffers are that parsers share for texts over largeBuffer. A parser has one from the
// middle of such a text to the next call of Next: one that waits for its next event has none.
const pooled = 80 << 10

var pool = sync.Pool{New: func() any { return new([pooled]byte) }}

// extend appends.
func (p *Parser) extend(b, value []byte) []byte {
	if len(b)+len(value) <= cap(b) {
		return append(b, value...)
	}
	return p.grow(b, value)
}

// grow appends to a buffer that is too small: in a shared one if the text is large, or was so a few events ago.
func (p *Parser) grow(b, value []byte) []byte {
	n := len(b) + len(value)
	if n > pooled || n <= smallBuffer || n <= largeBuffer && (p.long == 0 || cap(b) > 0) {
		return append(b, value...)
	}
	return append(append(pool.Get().(*[pooled]byte)[:0], b...), value...)
}

// recycle empties a buffer for its next use, once nothing points to it.
func (p *Parser) recycle(b []byte) []byte {
	if cap(b) > smallBuffer {
		return p.shrink(b)
	}
	return b[:0]
}

// shrink keeps a buffer that grew only for as long as texts need it, or others use it, and none for a large one.
func (p *Parser) shrink(b []byte) []byte {
	switch {
	case cap(b) == pooled:
		pool.Put((*[pooled]byte)(b[:pooled]))
		return nil
	case cap(b) > largeBuffer, p.long == 0 && !p.shared:
		return nil
	}
	return b[:0]
}
