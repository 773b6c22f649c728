package sse

import (
	"bytes"
	"crypto/tls"
	"reflect"
	"unsafe"
)

// A tls.Conn keeps what its handshake took for as long as it lives: two buffers that have grown to the size of the server's
// certificates, and what these said (golang/go#43563, #81348). With a chain of 4 KB that is 12 KB for each of thousands of
// streams, of which the keys and the rest take 3. No method gives it back, so it is taken by the names of the fields. Where
// a version of Go has no such field nothing is taken: streams work the same, and TestTLSConnIsSlimmed fails.
var (
	rawInput = connField[bytes.Buffer]("rawInput") // records as they came, from the start of one
	input    = connField[bytes.Reader]("input")    // of a record, decrypted: it lies in rawInput's buffer
	hand     = connField[bytes.Buffer]("hand")     // handshake messages, from the start of one
)

// field is where a field of tls.Conn lies.
type field[T any] struct {
	offset uintptr
	found  bool
}

func connField[T any](name string) field[T] {
	f, ok := reflect.TypeFor[tls.Conn]().FieldByName(name)
	return field[T]{f.Offset, ok && f.Type == reflect.TypeFor[T]()}
}

// of is the field of a connection, where it was found: by its name and its type.
func (f field[T]) of(conn *tls.Conn) *T {
	return (*T)(unsafe.Add(unsafe.Pointer(conn), f.offset)) //nolint:gosec // G103: the offset is reflect's, of this very type
}

// afterwards is what a client that resumes no session never asks for again.
var afterwards = []string{"peerCertificates", "verifiedChains", "ocspResponse", "scts", "ekm"}

// slim lets go of what the handshake left. For the reader, which is the only one that has the connection.
func slim(conn *tls.Conn) {
	v := reflect.ValueOf(conn).Elem()
	for _, name := range afterwards {
		if f := v.FieldByName(name); f.IsValid() {
			reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Elem().SetZero()
		}
	}
}

// lend has TLS read records into a buffer of the caller's, behind what it has of one. It is to be taken back.
func lend(conn *tls.Conn, buf []byte) {
	if !rawInput.found {
		return
	}
	if raw := rawInput.of(conn); raw.Len() <= len(buf)/2 {
		*raw = *bytes.NewBuffer(buf[:copy(buf, raw.Bytes())])
	}
}

// bringRecord reads into the buffer that was lent, where TLS has nothing: its own reads allocate. Where the record is not
// whole TLS reads on by itself.
func bringRecord(conn *tls.Conn, read func([]byte) (int, error)) error {
	if !rawInput.found || !input.found || input.of(conn).Len() > 0 {
		return nil
	}
	raw := rawInput.of(conn)
	if raw.Len() > 0 {
		return nil
	}
	raw.Reset()
	room := raw.AvailableBuffer()
	if cap(room) == 0 {
		return nil
	}
	n, err := read(room[:cap(room)])
	_, _ = raw.Write(room[:n]) // to where it is
	return err
}

// takeBack leaves TLS a copy of what it has of a record, mostly nothing. To be called when Read has returned an error:
// what it had decrypted lies in the buffer too.
func takeBack(conn *tls.Conn) {
	if rawInput.found {
		raw := rawInput.of(conn)
		*raw = *bytes.NewBuffer(bytes.Clone(raw.Bytes()))
	}
	if hand.found {
		if h := hand.of(conn); h.Len() == 0 && h.Cap() > 0 {
			*h = bytes.Buffer{}
		}
	}
}
