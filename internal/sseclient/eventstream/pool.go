package eventstream

import "sync"

// pooledSize is the size of the pooled buffers. Parsers use them for values longer than largeBuffer, and for shorter
// values after recent long values. A parser that waits for its next event holds no pooled buffer.
const pooledSize = 80 << 10

var pool = sync.Pool{New: func() any { return new([pooledSize]byte) }}

func (p *Parser) extend(b, value []byte) []byte {
	if len(b)+len(value) <= cap(b) {
		return append(b, value...)
	}
	return p.grow(b, value)
}

// grow appends to a buffer that is too small. It uses a pooled buffer for a long value, and after recent long values.
func (p *Parser) grow(b, value []byte) []byte {
	n := len(b) + len(value)
	if n > pooledSize || n <= smallBuffer || n <= largeBuffer && (p.longFields == 0 || cap(b) > 0) {
		return append(b, value...)
	}
	return append(append(pool.Get().(*[pooledSize]byte)[:0], b...), value...)
}

// recycle returns an empty buffer in place of b, whose content is no longer used.
func (p *Parser) recycle(b []byte) []byte {
	if cap(b) > smallBuffer {
		return p.shrink(b)
	}
	return b[:0]
}

// shrink returns a pooled buffer to the pool, and drops any other buffer over largeBuffer. It keeps a smaller buffer
// only while parsers share it or recent values need it.
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
