//go:build !unix

package requests

import "net"

// peek sees nothing here: a request on a connection that the server closed while it was idle fails.
func peek(net.Conn) (pending, ended bool) { return false, false }
