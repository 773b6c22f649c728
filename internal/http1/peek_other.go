//go:build !unix

package http1

import (
	"errors"
	"net"
)

// peek cannot tell here without waiting.
func peek(net.Conn) (pending bool, err error) { return false, errors.ErrUnsupported }
