package requests

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	"go.k6.io/k6/v2/js/modulestest"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/lib/netext"
	"go.k6.io/k6/v2/lib/netext/httpext"
	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/test/sockets"
)

type failingTransport struct{ err error }

func (f failingTransport) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

// k6 does not export its error codes, but its HTTP client returns them.
func TestErrorCodesMatchK6(t *testing.T) {
	t.Parallel()
	rt, logger := modulestest.NewRuntime(t), logrus.New()
	logger.SetOutput(io.Discard)
	op := func(op string, err error) error { return &net.OpError{Op: op, Net: "tcp", Err: err} }
	for _, err := range []error{
		io.EOF,
		io.ErrUnexpectedEOF,
		errors.New("malformed HTTP response"),
		context.DeadlineExceeded,
		op("read", os.ErrDeadlineExceeded),
		op("dial", os.ErrDeadlineExceeded),
		op("read", os.NewSyscallError("read", syscall.ECONNRESET)),
		op("write", os.NewSyscallError("write", syscall.EPIPE)),
		op("write", os.NewSyscallError("write", syscall.ECONNRESET)),
		op("read", errors.New("other")),
		op("dial", os.NewSyscallError("connect", syscall.ECONNREFUSED)),
		op("dial", os.NewSyscallError("connect", syscall.EADDRNOTAVAIL)),
		op("dial", os.NewSyscallError("connect", syscall.ENETUNREACH)),
		op("dial", os.NewSyscallError("socket", syscall.EMFILE)),
		op("dial", errors.New("other")),
		op("dial", &net.DNSError{Err: "no such host", IsNotFound: true}),
		&net.OpError{Op: "read", Net: "unix", Err: errors.New("other")},
		&net.DNSError{Err: "no such host", IsNotFound: true},
		&net.DNSError{Err: "server misbehaving"},
		fmt.Errorf("lookup h: no such host"),
		netext.BlackListedIPError{},
		netext.BlockedHostError{},
		x509.UnknownAuthorityError{},
		&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}},
		&tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{}, Host: "h"}},
		tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"},
		fmt.Errorf("wrapped: %w", op("read", os.NewSyscallError("read", syscall.ECONNRESET))),
	} {
		state := &lib.State{
			Transport: failingTransport{err}, Samples: make(chan metrics.SampleContainer, 10), Logger: logger,
			BuiltinMetrics: rt.BuiltinMetrics, Tags: lib.NewVUStateTags(rt.VU.InitEnvField.Registry.RootTagSet()),
		}
		state.Options.SystemTags = metrics.NewSystemTagSet()
		to := must(httpext.NewURL("http://h", "http://h"))
		resp, requestErr := httpext.MakeRequest(context.Background(), state, &httpext.ParsedHTTPRequest{
			URL: &to, Req: &http.Request{Method: http.MethodGet, URL: must(url.Parse("http://h")), Header: http.Header{}}, Timeout: time.Minute,
			TagsAndMeta: state.Tags.GetCurrentValues(),
		})
		require.NoError(t, requestErr)
		require.Equal(t, resp.ErrorCode, errorCode(err), "%v", err)
	}
}

// A lack of ports or descriptors is a fault of this machine. An unreachable host is not.
func TestEachResourceThatThisMachineLacksHasItsOwnCode(t *testing.T) {
	t.Parallel()
	for errno, code := range map[syscall.Errno]string{
		syscall.EADDRNOTAVAIL: shard.CodeNoPort, syscall.EADDRINUSE: shard.CodeNoPort,
		syscall.EMFILE: shard.CodeNoDescriptor, syscall.ENFILE: shard.CodeNoDescriptor,
		syscall.EHOSTUNREACH: "net-1213", syscall.ENETUNREACH: "net-1213", syscall.EACCES: "net-1213", syscall.ECONNREFUSED: "net-1212",
	} {
		v := newVU(t)
		v.state.Dialer = sockets.FailingDialer{Errno: errno}
		v.await(`closed({concurrency: 1, requests: 1, operations: [{url: 'http://192.0.2.1/'}]})`)
		require.Equal(t, map[string]int{code: 1}, v.codes(), "%v", errno)
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
