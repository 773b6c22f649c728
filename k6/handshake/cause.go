package handshake

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/http1"
	"github.com/sse-soak/sse-soak/k6/network"
)

// A Cause is the reason for a failed connection. handshake.d.ts describes each value.
type Cause string

// The causes, in the order of a connection's phases. A failed dial may also have a code of network.LackOf as its cause.
const (
	causeInterrupted   Cause = "interrupted"
	causeDNS           Cause = "dns"
	causeRefused       Cause = "refused"
	causeTCPTimeout    Cause = "tcp_timeout"
	causeTCPReset      Cause = "tcp_reset"
	causeUnreachable   Cause = "unreachable"
	causeServerCert    Cause = "server_certificate"
	causeClientCert    Cause = "client_certificate"
	causeTLSAlert      Cause = "tls_alert"
	causeTLSTimeout    Cause = "tls_timeout"
	causeTLSReset      Cause = "tls_reset"
	causeTLS           Cause = "tls"
	causeResumed       Cause = "resumed"
	causeAnswerTimeout Cause = "answer_timeout"
	causeAnswerReset   Cause = "answer_reset"
	causeStatus        Cause = "status"
	causeAnswer        Cause = "answer"
)

func dialCause(ctx context.Context, err error) Cause {
	switch lack := network.LackOf(err); {
	case isCanceled(ctx):
		return causeInterrupted
	case lack != "":
		return Cause(lack)
	case http1.IsTimeout(ctx, err):
		return causeTCPTimeout
	case http1.IsUnknownName(err):
		return causeDNS
	case http1.IsReset(err):
		return causeTCPReset
	case http1.IsUnreachable(err):
		return causeUnreachable
	}
	return causeRefused
}

// certificateAlerts are the alerts by which a server refuses a client certificate or reports that the client sent none
// (RFC 8446, 6.2).
var certificateAlerts = []tls.AlertError{
	42,  // bad_certificate
	43,  // unsupported_certificate
	44,  // certificate_revoked
	45,  // certificate_expired
	46,  // certificate_unknown
	48,  // unknown_ca
	49,  // access_denied
	116, // certificate_required
}

// tlsCause returns the cause of an error on a TCP connection; timeout, reset and fallback are the causes specific to
// the failed phase. A server refuses a client certificate with an alert. In TLS 1.3 the alert arrives only after the
// client has completed its handshake.
func tlsCause(ctx context.Context, err error, timeout, reset, fallback Cause) Cause {
	var verification *tls.CertificateVerificationError
	var host x509.HostnameError
	switch {
	case isCanceled(ctx):
		return causeInterrupted
	case errors.As(err, &verification), errors.As(err, &host):
		return causeServerCert
	case isCertificateAlert(err):
		return causeClientCert
	case strings.Contains(err.Error(), "remote error: tls:"):
		return causeTLSAlert
	case http1.IsTimeout(ctx, err):
		return timeout
	case http1.IsReset(err), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return reset
	}
	return fallback
}

// isCertificateAlert reports whether an error is an alert about the client's certificate. It compares texts, because
// crypto/tls does not export the number of a received alert.
func isCertificateAlert(err error) bool {
	_, alert, ok := strings.Cut(err.Error(), "remote error: ")
	return ok && slices.ContainsFunc(certificateAlerts, func(a tls.AlertError) bool { return alert == a.Error() })
}

// isCanceled reports whether k6 ended the iteration.
func isCanceled(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }
