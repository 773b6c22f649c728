package sse

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"io"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// Content types of records.
const (
	typeAlert = 21
	typeData  = 23
)

// A records writes TLS records after a handshake of crypto/tls, also records that crypto/tls would not write.
type records struct {
	to      io.Writer
	version uint16
	aead    cipher.AEAD // has nonces of 8 bytes
	secret  []byte      // traffic secret of TLS 1.3
	seq     uint64      // number of the next record
}

// recordsOf makes the handshake and returns a writer that continues its sequence of records.
func recordsOf(t *testing.T, p *peer) *records {
	conn := p.Conn.(*tls.Conn)
	require.NoError(t, conn.Handshake())
	out := reflect.ValueOf(conn).Elem().FieldByName("out")
	hidden := func(name string) reflect.Value {
		f := out.FieldByName(name)
		return reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Elem()
	}
	seq := hidden("seq").Interface().([8]byte)
	return &records{
		to: p.line, version: conn.ConnectionState().Version, aead: hidden("cipher").Interface().(cipher.AEAD),
		secret: hidden("trafficSecret").Bytes(), seq: binary.BigEndian.Uint64(seq[:]),
	}
}

func (r *records) send(text string) { r.write(typeData, []byte(text)) }

func (r *records) write(kind byte, content []byte) { _, _ = r.to.Write(r.seal(kind, content)) }

// seal returns an encrypted record (RFC 8446, section 5.2; RFC 5246, section 6.2.3.3).
func (r *records) seal(kind byte, content []byte) []byte {
	seq := binary.BigEndian.AppendUint64(nil, r.seq)
	r.seq++
	header := func(kind byte, n int) []byte { return []byte{kind, 3, 3, byte(n >> 8), byte(n)} }
	if r.version == tls.VersionTLS13 {
		record := header(typeData, len(content)+1+r.aead.Overhead())
		return r.aead.Seal(record, seq, append(content, kind), record)
	}
	sealed := r.aead.Seal(nil, seq, content, append(seq, header(kind, len(content))...))
	return append(append(header(kind, len(seq)+len(sealed)), seq...), sealed...)
}

// ticket returns a NewSessionTicket message of TLS 1.3 that is valid for an hour.
func ticket() []byte {
	body := []byte{0, 0, 14, 16, 1, 2, 3, 4, 1, 9, 0, 200}
	body = append(body, make([]byte, 200)...)
	body = append(body, 0, 0)
	return append([]byte{4, 0, 0, byte(len(body))}, body...)
}

// updateKey sends a KeyUpdate and encrypts later records with the next key (RFC 8446, sections 4.6.3 and 7.2). requested
// asks the client for a KeyUpdate, too.
func (r *records) updateKey(t *testing.T, requested bool) {
	message := []byte{24, 0, 0, 1, 0}
	if requested {
		message[4] = 1
	}
	r.write(typeHandshake, message)
	expand := func(label string, n int) []byte {
		info := append([]byte{0, byte(n), byte(len("tls13 " + label))}, "tls13 "+label...)
		out, err := hkdf.Expand(sha256.New, r.secret, string(append(info, 0)), n)
		require.NoError(t, err)
		return out
	}
	r.secret = expand("traffic upd", sha256.Size)
	block, err := aes.NewCipher(expand("key", 16))
	require.NoError(t, err)
	gcm, err := cipher.NewGCM(block)
	require.NoError(t, err)
	r.aead, r.seq = maskedNonces{gcm, expand("iv", 12)}, 0
}

// A maskedNonces derives a nonce from a number of 8 bytes, as TLS 1.3 does.
type maskedNonces struct {
	cipher.AEAD
	mask []byte
}

func (m maskedNonces) Seal(dst, number, plain, additional []byte) []byte {
	nonce := append([]byte(nil), m.mask...)
	for i, b := range number {
		nonce[4+i] ^= b
	}
	return m.AEAD.Seal(dst, nonce, plain, additional)
}
