package sseclient

import (
	"bytes"
	"crypto/tls"
	"reflect"
)

// releaseHandshake releases the two buffers of a tls.Conn that grew to the size of the server's certificates during the handshake
// (golang/go#43563, #81348): 4 KB and more for each of thousands of streams. No method does that, so the fields are found by their
// names; if a version of Go has none, the stream works the same and TestTLSReleasesHandshake fails. Only the reader of the
// connection may call it.
func releaseHandshake(conn *tls.Conn) {
	for _, name := range []string{"rawInput", "hand"} {
		if field, ok := bufferOf(conn, name); ok {
			*field = *bytes.NewBuffer(bytes.Clone(field.Bytes())) // what was read ahead stays
		}
	}
}

func bufferOf(conn *tls.Conn, name string) (*bytes.Buffer, bool) {
	field := reflect.ValueOf(conn).Elem().FieldByName(name)
	if !field.IsValid() {
		return nil, false
	}
	buffer, ok := reflect.NewAt(field.Type(), field.Addr().UnsafePointer()).Interface().(*bytes.Buffer)
	return buffer, ok
}
