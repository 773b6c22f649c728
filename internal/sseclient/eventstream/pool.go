package eventstream

import "sync"

// pooledSize is the size of the buffers that parsers share for texts over largeBuffer. A parser that waits for its
// next event has none.
const pooledSize = 80 << 10

var pool = sync.Pool{New: func() any { return new([pooledSize]byte) }}

// extend appends value to b.
func (p *Parser) extend(b, value []byte) []byte {
	if len(b)+len(value) <= cap(b) {
		return append(b, value...)
	}
	return p.grow(b, value)
}

// grow appends to a buffer that is too small. It uses a pooled buffer if the text is large, or if recent texts were.
func (p *Parser) grow(b, value []byte) []byte {
	n := len(b) + len(value)
	if n > pooledSize || n <= smallBuffer || n <= largeBuffer && (p.longFields == 0 || cap(b) > 0) {
		return append(b, value...)
	}
	return append(append(pool.Get().(*[pooledSize]byte)[:0], b...), value...)
}

// recycle empties a buffer for its next use. Nothing may refer to its content.
func (p *Parser) recycle(b []byte) []byte {
	if cap(b) > smallBuffer {
		return p.shrink(b)
	}
	return b[:0]
}

// shrink returns a large buffer to the pool or drops it. It keeps a grown buffer while recent texts need it or
// parsers share it.
func (p *Parser) shrink(b []byte) []byte {
	switch {
	case cap(b) == pooledSize:
		pool.Put((*[pooledSize]byte)(b[:pooledSize]))
		return nil
	case cap(b) > largeBuffer, p.longFields == 0 && !p.isShared:
		return nil
	}
	return b[:0]
}
