package service

import (
	"fmt"
	"hash/crc32"
	"strconv"
)

// The checksum of a message is a CRC-32C, written as 8 hexadecimal digits in lower case. It covers the marker, the
// number and the time of sending (whole microseconds), with a NUL after the marker and another after the number. It
// covers the values, not their notation: a service may deliver the number 17 as 1.7e1.

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var nul = []byte{0}

func markerSum(marker []byte) uint32 {
	return crc32.Update(crc32.Checksum(marker, castagnoli), castagnoli, nul)
}

// messageSum continues the markerSum with the number and the time.
func messageSum(partial uint32, seq, sentAt int64) uint32 {
	return crc32.Update(partial, castagnoli, fmt.Appendf(nil, "%d\x00%d", seq, sentAt))
}

func parseSum(text []byte) (sum uint32, ok bool) {
	n, err := strconv.ParseUint(string(text), 16, 32)
	return uint32(n), err == nil && fmt.Sprintf("%08x", n) == string(text)
}

// A checksumInput has the checksum of a message, if present, and the values that it covers, except the marker.
type checksumInput struct {
	seq, sent value
	sum       uint32
	present   bool
}

// fits reports whether the checksum matches the number, the time and the marker. partial is a markerSum.
func (m *checksumInput) fits(partial uint32, reading *Reading) bool {
	if !m.present || !reading.HasSeq || !reading.HasSentAt {
		return false
	}
	// Usually, the number and the time have the notation in which they were published.
	crc := crc32.Update(crc32.Update(partial, castagnoli, m.seq.text), castagnoli, nul)
	return crc32.Update(crc, castagnoli, m.sent.text) == m.sum || messageSum(partial, reading.Seq, reading.SentAt) == m.sum
}

// verify compares a message with its checksum, and returns its kind. The argument kind is based on the marker, which
// may be corrupted. A message of another run has a checksum with the marker of that run, or no checksum. If a Foreign
// message does not match its checksum, verify returns Delivery and sets out.Err to ErrMarker. It does the same if a
// message without a marker matches its checksum with the marker of this run. If a Delivery does not match its checksum,
// or has none, verify sets out.Err to ErrSum, unless the message has an error other than ErrMissing.
func (r *Reader) verify(kind Kind, marker value, m *checksumInput, out *Reading) Kind {
	switch {
	case kind == Delivery && r.run == "" && m.fits(markerSum(marker.text), out),
		kind == Delivery && r.run != "" && m.fits(r.sum, out),
		kind == Foreign && (!m.present || m.fits(markerSum(marker.text), out)),
		(kind == Other || kind == Unmarked) && !m.fits(r.sum, out):
		return kind
	case kind != Delivery:
		out.Err = ErrMarker
		return Delivery
	}
	if out.Err == nil || out.Err == ErrMissing {
		out.Err = ErrSum // with ErrMissing, the message would be counted by interval
	}
	return Delivery
}
