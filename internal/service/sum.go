package service

import (
	"hash/crc32"
	"strconv"
	"unicode/utf8"
)

// The checksum of a message is the CRC-32C of its marker, its number and the time at which it was sent (whole
// microseconds), as texts with a NUL between them, written as 8 hexadecimal digits in lower case. It is of the
// values: a service may write the number as 1.7e1 when it passes a message on.

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var nul = []byte{0}

// crcOf goes on from crc with a text, which does not escape to the heap, as it would in crc32.Update.
func crcOf(crc uint32, text []byte) uint32 {
	for _, c := range text {
		crc = ^(castagnoli[byte(^crc)^c] ^ ^crc>>8) //nolint:gosec // G115: the lowest byte of a CRC
	}
	return crc
}

// markerSum is the beginning of the checksum: the marker.
func markerSum(run string) (crc uint32) {
	for i := range len(run) {
		crc = crcOf(crc, []byte{run[i]})
	}
	return crcOf(crc, nul)
}

// messageSum goes on from the marker with number and time.
func messageSum(marker uint32, seq, sentAt int64) uint32 {
	var buffer [48]byte
	text := strconv.AppendInt(buffer[:0], seq, 10)
	text = append(text, 0)
	return crcOf(marker, strconv.AppendInt(text, sentAt, 10))
}

// appendSum appends the checksum of a message.
func appendSum(dst []byte, v *Values) []byte {
	sum := messageSum(markerSum(v.Run), v.Seq, v.SentAt)
	for shift := 28; shift >= 0; shift -= 4 {
		dst = append(dst, sumDigits[sum>>shift&15])
	}
	return dst
}

const sumDigits = "0123456789abcdef"

// parseSum reads a checksum, exactly as appendSum writes it.
func parseSum(text []byte) (sum uint32, ok bool) {
	for _, c := range text {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c = c - 'a' + 10
		default:
			return 0, false
		}
		sum = sum<<4 | uint32(c)
	}
	return sum, len(text) == 8
}

// sum is markerSum of a marker as it stands in a block.
func (v value) sum() (crc uint32) {
	var buffer [utf8.UTFMax]byte
	for raw := v.raw; len(raw) > 0; {
		if v.kind != '"' || raw[0] != '\\' {
			crc = crcOf(crc, raw[:1])
			raw = raw[1:]
			continue
		}
		c, n := unescape(raw)
		crc = crcOf(crc, utf8.AppendRune(buffer[:0], c))
		raw = raw[n:]
	}
	return crcOf(crc, nul)
}

// summed is what the checksum of a message is compared with: number and time as they stand in the block. It has no
// pointer to the reading, which crc32.Update would bring to the heap.
type summed struct {
	seq, sent value
	sum       uint32
	there     bool
}

// fits says whether the checksum is that of number and time behind that marker.
func (m *summed) fits(marker uint32, of *Reading) bool {
	if !m.there || !of.HasSeq || !of.HasSentAt {
		return false
	}
	// Mostly number and time stand there as they were published: that is the fast way.
	crc := crc32.Update(crc32.Update(marker, castagnoli, m.seq.raw), castagnoli, nul)
	return crc32.Update(crc, castagnoli, m.sent.raw) == m.sum || messageSum(marker, of.Seq, of.SentAt) == m.sum
}

// verify compares a message with its checksum. kind is what the marker says, which may have been changed itself: a
// message of another run has the checksum of that run, or none.
func (r *Reader) verify(kind Kind, marker value, m *summed, out *Reading) Kind {
	switch {
	case kind == Delivery && r.run == "" && m.fits(marker.sum(), out),
		kind == Delivery && r.run != "" && m.fits(r.sum, out),
		kind == Foreign && (!m.there || m.fits(marker.sum(), out)),
		(kind == Other || kind == Unmarked) && !m.fits(r.sum, out):
		return kind
	case kind != Delivery:
		out.Err = ErrMarker
		return Delivery
	}
	if out.Err == nil || out.Err == ErrMissing {
		out.Err = ErrSum // ErrMissing would let the clock count it
	}
	return Delivery
}
