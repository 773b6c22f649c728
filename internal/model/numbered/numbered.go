// Package numbered writes and reads numbers inside the text of a streamed answer. A gateway may rewrite the JSON around
// the text, merge chunks or split them. The numbers show which chunks arrived, how often and in which order.
//
// The text of chunk k of n is "[k/n:CRC] ", followed by whole words of padding. CRC is the CRC-32 (IEEE) of "ID/k/n" as
// eight lower-case hexadecimal digits; ID is the marker of the request. Chunks are numbered from 1.
package numbered

import (
	"hash/crc32"
	"strconv"
)

// maxDigits is the maximum number of digits of a chunk number or a count.
const maxDigits = 9

const padding = "lorem "

// A Token is one chunk number found in text.
type Token struct {
	K   int    // number of the chunk, from 1
	N   int    // number of chunks of the whole answer
	CRC uint32 // checksum as found in the text
}

// Valid reports whether the token belongs to the request with the marker id and is unchanged.
func (t Token) Valid(id string) bool { return t.CRC == Checksum(id, t.K, t.N) }

// Checksum returns the CRC-32 (IEEE) of "ID/k/n".
func Checksum(id string, k, n int) uint32 {
	var number [24]byte
	crc := update(^uint32(0), id)
	crc = update(crc, append(strconv.AppendInt(append(number[:0], '/'), int64(k), 10), '/'))
	return ^update(crc, strconv.AppendInt(number[:0], int64(n), 10))
}

// update continues a checksum byte by byte. It does not use crc32.Update, whose argument always escapes to the heap.
func update[T string | []byte](crc uint32, text T) uint32 {
	for i := range len(text) {
		crc = crc32.IEEETable[byte(crc)^text[i]] ^ crc>>8 // #nosec G115 -- the low byte is meant
	}
	return crc
}

// Append appends the text of chunk k of n, with padding up to size bytes in whole words.
func Append(text []byte, id string, k, n, size int) []byte {
	start := len(text)
	text = AppendToken(text, Token{K: k, N: n, CRC: Checksum(id, k, n)})
	text = append(text, ' ')
	for len(text)-start+len(padding) <= size {
		text = append(text, padding...)
	}
	return text
}

// AppendToken appends a token as it is, even if its checksum is wrong.
func AppendToken(text []byte, t Token) []byte {
	text = strconv.AppendInt(append(text, '['), int64(t.K), 10)
	text = strconv.AppendInt(append(text, '/'), int64(t.N), 10)
	text = append(text, ':')
	for shift := 28; shift >= 0; shift -= 4 {
		text = append(text, "0123456789abcdef"[t.CRC>>shift&15])
	}
	return append(text, ']')
}

// Next returns the first complete token of text, and the rest of text after it. If text has no complete token, rest is
// the end of text that may be the start of a token. The caller prepends it to the next text.
func Next[T string | []byte](text T) (t Token, rest T, found bool) {
	for i := 0; i < len(text); i++ {
		if text[i] != '[' {
			continue
		}
		token, size, complete := parse(text[i:])
		if !complete {
			return Token{}, text[i:], false
		}
		if size > 0 {
			return token, text[i+size:], true
		}
	}
	return Token{}, text[len(text):], false
}

// parse reads a token at the start of text, which begins with a bracket. size is 0 if there is no token. complete is
// false if text may be only the start of a token.
func parse[T string | []byte](text T) (t Token, size int, complete bool) {
	at := 1
	for _, field := range [...]struct {
		to  *int
		end byte
	}{{&t.K, '/'}, {&t.N, ':'}} {
		first := at
		for at < len(text) && '0' <= text[at] && text[at] <= '9' && at-first < maxDigits && text[first] != '0' {
			*field.to = *field.to*10 + int(text[at]-'0')
			at++
		}
		if at == len(text) {
			return Token{}, 0, false
		}
		if at == first || text[at] != field.end {
			return Token{}, 0, true
		}
		at++
	}
	for first := at; at < first+8; at++ {
		if at == len(text) {
			return Token{}, 0, false
		}
		digit, ok := hexDigit(text[at])
		if !ok {
			return Token{}, 0, true
		}
		t.CRC = t.CRC<<4 | digit
	}
	if at == len(text) {
		return Token{}, 0, false
	}
	if text[at] != ']' {
		return Token{}, 0, true
	}
	return t, at + 1, true
}

func hexDigit(c byte) (digit uint32, ok bool) {
	switch {
	case '0' <= c && c <= '9':
		return uint32(c - '0'), true
	case 'a' <= c && c <= 'f':
		return uint32(c-'a') + 10, true
	}
	return 0, false
}
