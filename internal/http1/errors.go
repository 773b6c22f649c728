package http1

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
)

// StatusText returns a status with its standard text, such as "404 Not Found". A status such as 520 has no text.
func StatusText(status int) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", status, http.StatusText(status)))
}

// IsUnknownName reports whether a dial failed to resolve the host name.
func IsUnknownName(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) || strings.HasPrefix(err.Error(), "lookup ") // the resolver of k6 returns an untyped error
}

// IsTimeout reports whether the deadline of ctx has passed, or err is a timeout of the connection or of the kernel.
func IsTimeout(ctx context.Context, err error) bool {
	var timeout net.Error
	return errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.As(err, &timeout) && timeout.Timeout()
}

// IsReset reports whether the peer, or a machine on the path to it, has reset the connection.
func IsReset(err error) bool {
	return IsOneOf(err, syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNABORTED)
}

// IsUnreachable reports whether there is no route to the peer.
func IsUnreachable(err error) bool { return IsOneOf(err, syscall.EHOSTUNREACH, syscall.ENETUNREACH) }

// IsExhausted reports whether this machine had no address, port or descriptor left for a connection.
func IsExhausted(err error) bool {
	return IsOneOf(err, syscall.EADDRNOTAVAIL, syscall.EADDRINUSE) || IsOutOfDescriptors(err)
}

// IsOutOfDescriptors reports whether this machine had no descriptor left for a connection.
func IsOutOfDescriptors(err error) bool { return IsOneOf(err, syscall.EMFILE, syscall.ENFILE) }

// IsOneOf reports whether err is one of the given system errors, whose numbers differ on Windows.
func IsOneOf(err error, errnos ...syscall.Errno) bool {
	return slices.ContainsFunc(errnos, func(e syscall.Errno) bool { return errors.Is(err, systemErrno(e)) })
}
