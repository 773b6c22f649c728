package sse

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/sockets"
)

var tlsTransports = []transport{transports[1], transports[3]}

// tlsLog returns the data and the end that a script receives over TLS from a server that writes its own records.
func tlsLog(t *testing.T, w transport, version uint16, server func(p *peer, r *recordWriter)) string {
	t.Helper()
	v, config := w.vu(t), sockets.ServerTLS().Clone()
	config.MinVersion, config.MaxVersion = version, version
	v.state.TLSConfig.Renegotiation = tls.RenegotiateFreelyAsClient // as in k6
	v.set("url", strings.Replace(serveTLS(t, config, func(p *peer) {
		r := newRecordWriter(t, p)
		server(p, r)
		r.write(typeAlert, []byte{1, 0}) // close_notify, which crypto/tls would send with a wrong record number
		_ = p.tcp.Close()
	}), "http:", "https:", 1))
	return v.readStream("idleTimeout: 4000")
}

const (
	endedByServer = "server: the server ended the stream"
	twoEvents     = "data: a\n\ndata: b\n\n"
)

func TestTLSRecords(t *testing.T) {
	t.Parallel()
	longText := strings.Repeat("x", 15<<10) // nearly the maximum size of a record
	for _, tt := range []struct {
		name    string
		server  func(p *peer, r *recordWriter)
		want    string
		version uint16 // only this version of TLS; 0: both versions
	}{
		{"a record that has the head and exceeds its buffer", func(p *peer, r *recordWriter) {
			r.send(streamHead + "data: " + longText[:5000] + "\n\n" + twoEvents)
			time.Sleep(50 * time.Millisecond)
			r.send("data: c\n\n")
		}, "5000 a b c " + endedByServer, 0},
		{"records of one byte", func(p *peer, r *recordWriter) {
			p.sendInPieces(100, func() {
				for _, b := range []byte(streamHead + twoEvents) {
					r.write(typeData, []byte{b})
				}
			})
		}, "a b " + endedByServer, 0},
		{"large records in pieces", func(p *peer, r *recordWriter) {
			p.sendInPieces(5000, func() {
				r.send(streamHead)
				for range 20 {
					r.send("data: " + longText + "\n\n")
				}
			})
		}, strings.Repeat("15360 ", 20) + endedByServer, 0},
		{"empty records", func(_ *peer, r *recordWriter) {
			r.send(streamHead)
			for range 3 {
				r.send("")
			}
			r.send(twoEvents)
		}, "a b " + endedByServer, 0},
		{"close_notify with the last event", func(p *peer, r *recordWriter) {
			p.sendInPieces(0, func() { r.send(streamHead); r.send(twoEvents); r.write(typeAlert, []byte{1, 0}) })
			p.awaitEnd()
		}, "a b " + endedByServer, 0},
		{"close_notify on its own", func(p *peer, r *recordWriter) {
			r.send(streamHead + twoEvents)
			time.Sleep(20 * time.Millisecond)
			r.write(typeAlert, []byte{1, 0})
			p.awaitEnd()
		}, "a b " + endedByServer, 0},
		{"close_notify inside an event", func(_ *peer, r *recordWriter) {
			r.send(streamHead + twoEvents + "data: c\n")
			r.write(typeAlert, []byte{1, 0})
		}, "a b truncated: the stream ended inside an event: unexpected EOF", 0},
		{"no close_notify", func(p *peer, r *recordWriter) { r.send(streamHead + twoEvents); _ = p.tcp.Close() }, "a b " + endedByServer, 0},
		{"a truncated record", func(p *peer, r *recordWriter) {
			r.send(streamHead + twoEvents)
			record := r.seal(typeData, []byte("data: c\n\n"))
			_, _ = p.tcp.Write(record[:len(record)-1])
			_ = p.tcp.Close()
		}, "a b truncated: read the stream: the connection ended inside a TLS record: unexpected EOF", 0},
		{"a truncated header", func(p *peer, r *recordWriter) {
			r.send(streamHead + twoEvents)
			time.Sleep(20 * time.Millisecond)
			_, _ = p.tcp.Write([]byte{typeData, 3})
			_ = p.tcp.Close()
		}, "a b truncated: read the stream: the connection ended inside a TLS record: unexpected EOF", 0},
		{"a forged record", func(p *peer, r *recordWriter) {
			r.send(streamHead + twoEvents)
			record := r.seal(typeData, []byte("data: c\n\n"))
			record[len(record)-1] ^= 1
			_, _ = p.tcp.Write(record)
			p.awaitEnd()
		}, "a b error: read the stream: local error: tls: bad record MAC", 0},
		{"a fatal alert", func(_ *peer, r *recordWriter) { r.send(streamHead + twoEvents); r.write(typeAlert, []byte{2, 80}) },
			"a b error: read the stream: remote error: tls: internal error", 0},
		{"tickets", func(p *peer, r *recordWriter) {
			r.write(typeHandshake, ticket())
			r.send(streamHead + "data: a\n\n")
			time.Sleep(20 * time.Millisecond)
			r.write(typeHandshake, append(ticket(), ticket()...))
			last := ticket()
			r.write(typeHandshake, last[:50])
			time.Sleep(20 * time.Millisecond)
			r.write(typeHandshake, last[50:])
			r.send("data: b\n\n")
		}, "a b " + endedByServer, tls.VersionTLS13},
		{"new keys", func(p *peer, r *recordWriter) {
			r.send(streamHead + "data: a\n\n")
			for n := range 5 {
				r.updateKey(t, false)
				r.send(fmt.Sprintf("data: %d\n\n", n))
			}
			p.sendInPieces(7, func() { r.updateKey(t, false); r.updateKey(t, false); r.send("data: b\n\n") })
		}, "a 0 1 2 3 4 b " + endedByServer, tls.VersionTLS13},
		{"a new key that requests another", func(p *peer, r *recordWriter) {
			r.send(streamHead + "data: a\n\n")
			r.updateKey(t, true)
			update := make([]byte, 27) // an encrypted KeyUpdate
			_, err := io.ReadFull(p.line, update)
			require.NoError(t, err)
			require.EqualValues(t, typeData, update[0])
			r.send("data: b\n\n")
		}, "a b " + endedByServer, tls.VersionTLS13},
		{"a renegotiation", func(p *peer, r *recordWriter) {
			r.send(streamHead + twoEvents)
			r.write(typeHandshake, []byte{0, 0, 0, 0}) // HelloRequest
			p.awaitEnd()
		}, "a b error: read the stream: the server requested a TLS renegotiation, which an open stream refuses", tls.VersionTLS12},
	} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			for _, w := range tlsTransports {
				if tt.version == 0 || tt.version == version {
					t.Run(tt.name+", "+tls.VersionName(version)+", "+w.name, func(t *testing.T) {
						t.Parallel()
						require.Equal(t, tt.want, tlsLog(t, w, version, tt.server))
					})
				}
			}
		}
	}
}

// awaitEnd waits until the client ends the connection, so that the server does not end it first.
func (p *peer) awaitEnd() { _, _ = io.Copy(io.Discard, p.line) }

func TestServerGetsTheCertificateOfTheVU(t *testing.T) {
	runTransports(t, tlsTransports, func(t *testing.T, w transport) {
		config := sockets.ServerTLS().Clone()
		config.ClientAuth = tls.RequireAnyClientCert // the test certificate is valid only for servers
		url := strings.Replace(serveTLS(t, config, func(p *peer) {
			p.send(streamHead + fmt.Sprintf("data: %d\n\n", len(p.Conn.(*tls.Conn).ConnectionState().PeerCertificates)))
		}), "http:", "https:", 1)
		for hasCertificate, want := range map[bool]string{true: "1 server:", false: "error:"} { // in TLS 1.3 the refusal follows the handshake
			v := w.vu(t)
			if hasCertificate {
				v.state.TLSConfig.Certificates = config.Certificates
			}
			v.set("url", url)
			require.Contains(t, v.readStream(""), want)
		}
	})
}

// The end of a handshake allows the next one.
func TestConcurrentHandshakesAreLimited(t *testing.T) {
	for completes, want := range map[bool]int{false: maxHandshakes, true: maxHandshakes + 50} {
		var started atomic.Int32
		address := sockets.Serve(t, func(conn net.Conn) {
			started.Add(1)
			if completes {
				conn, _ = accept(conn, sockets.ServerTLS())
			}
			_, _ = io.Copy(io.Discard, conn) // no response
		})
		v := transports[1].vu(t)
		v.set("url", "https://"+address)
		v.set("most", maxHandshakes+50)
		v.set("started", started.Load)
		v.set("want", want)
		require.Equal(t, fmt.Sprint(want), v.log(`
			const all = [];
			for (let n = 0; n < most; n++) all.push(new EventSource(url, { http: "1.1", reconnect: false, connectTimeout: 0 }));
			const poll = setInterval(() => {
				if (started() < want) return;
				clearInterval(poll);
				setTimeout(() => { log.push(started()); all.forEach((s) => s.close()); }, 200);
			}, 5);
		`))
	}
}

// Content types of records.
const (
	typeAlert = 21
	typeData  = 23
)

// A recordWriter writes TLS records after a handshake of crypto/tls, even records that crypto/tls would not write.
type recordWriter struct {
	to      io.Writer
	version uint16
	aead    cipher.AEAD // has nonces of 8 bytes
	secret  []byte      // traffic secret of TLS 1.3
	seq     uint64      // number of the next record
}

// newRecordWriter makes the handshake and returns a writer that continues its sequence of records.
func newRecordWriter(t *testing.T, p *peer) *recordWriter {
	conn := p.Conn.(*tls.Conn)
	require.NoError(t, conn.Handshake())
	out := reflect.ValueOf(conn).Elem().FieldByName("out")
	field := func(name string) reflect.Value {
		f := out.FieldByName(name)
		return reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Elem()
	}
	seq := field("seq").Interface().([8]byte)
	return &recordWriter{
		to: p.line, version: conn.ConnectionState().Version, aead: field("cipher").Interface().(cipher.AEAD),
		secret: field("trafficSecret").Bytes(), seq: binary.BigEndian.Uint64(seq[:]),
	}
}

func (r *recordWriter) send(text string) { r.write(typeData, []byte(text)) }

func (r *recordWriter) write(kind byte, content []byte) { _, _ = r.to.Write(r.seal(kind, content)) }

// seal returns an encrypted record (RFC 8446, section 5.2; RFC 5246, section 6.2.3.3).
func (r *recordWriter) seal(kind byte, content []byte) []byte {
	seq := binary.BigEndian.AppendUint64(nil, r.seq)
	r.seq++
	header := func(kind byte, n int) []byte { return []byte{kind, 3, 3, byte(n >> 8), byte(n)} }
	if r.version == tls.VersionTLS13 {
		record := header(typeData, len(content)+1+r.aead.Overhead())
		return r.aead.Seal(record, seq, append(content, kind), record)
	}
	ciphertext := r.aead.Seal(nil, seq, content, append(seq, header(kind, len(content))...))
	return append(append(header(kind, len(seq)+len(ciphertext)), seq...), ciphertext...)
}

// ticket returns a NewSessionTicket message of TLS 1.3 with a lifetime of an hour.
func ticket() []byte {
	body := []byte{0, 0, 14, 16, 1, 2, 3, 4, 1, 9, 0, 200}
	body = append(body, make([]byte, 200)...)
	body = append(body, 0, 0)
	return append([]byte{4, 0, 0, byte(len(body))}, body...)
}

// updateKey sends a KeyUpdate and encrypts later records with the next key (RFC 8446, sections 4.6.3 and 7.2).
// If requested is set, it also requests a KeyUpdate from the client.
func (r *recordWriter) updateKey(t *testing.T, requested bool) {
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
