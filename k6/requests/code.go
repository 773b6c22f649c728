package requests

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"strconv"
	"syscall"

	"go.k6.io/k6/v2/lib/netext"

	"github.com/sse-soak/sse-soak/internal/http1"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/k6/network"
)

// codeOf returns the code of a request that got no complete response. k6 has one code for both a lack of ports on this
// machine and an unreachable service, so each resource that this machine lacks has its own code.
func codeOf(err error) string {
	if lack := network.LackOf(err); lack != "" {
		return lack
	}
	return shard.CodeNet + strconv.Itoa(errorCode(err))
}

// errorCode returns k6's code of err: the code of a timeout, or of the first error in the chain that has a code. It
// returns 1000 if there is no code. k6 does not export its codes; TestErrorCodesMatchK6 compares the results with them.
func errorCode(err error) int {
	if isTimeout(err) {
		var op *net.OpError
		if errors.As(err, &op) && op.Op == "dial" {
			return 1211
		}
		return 1050
	}
	for ; err != nil; err = errors.Unwrap(err) {
		if n := directCode(err); n != 0 {
			return n
		}
	}
	return 1000
}

// directCode returns k6's code of an error without regard to the errors that it wraps; 0 if it has no code.
func directCode(err error) int {
	switch e := err.(type) { //nolint:errorlint // errorCode unwraps
	case *net.DNSError:
		if e.IsNotFound {
			return 1101
		}
		return 1100
	case netext.BlackListedIPError:
		return 1110
	case netext.BlockedHostError:
		return 1111
	case *net.OpError:
		return opErrorCode(e)
	case tls.RecordHeaderError:
		return 1301
	case x509.UnknownAuthorityError:
		return 1310
	case x509.HostnameError:
		return 1311
	}
	return 0
}

func opErrorCode(e *net.OpError) int {
	var system *os.SyscallError
	isSystem := errors.As(e, &system)
	switch {
	case e.Net != "tcp" && e.Net != "tcp6":
		return 1010
	case isSystem && http1.IsOneOf(e, syscall.ECONNRESET):
		return 1220
	case isSystem && http1.IsOneOf(e, syscall.EPIPE):
		return 1201
	case e.Op != "dial":
		return 1200
	case isSystem && http1.IsOneOf(e, syscall.ECONNREFUSED):
		return 1212
	case isSystem:
		return 1213
	}
	if n := errorCode(e.Err); n != 1000 {
		return n
	}
	return 1210
}
