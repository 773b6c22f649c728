package sseclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"syscall"
	"time"

	"github.com/sse-soak/sse-soak/internal/http1"
	"github.com/sse-soak/sse-soak/internal/proxy"
	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// A failure is the reason for a failed attempt, or for the end of a stream.
type failure struct {
	reason     Reason
	err        error         // nil: the server ended the stream
	status     int           // HTTP status; 0: no response
	retryAfter time.Duration // from the response; 0: none
}

var errConnectTimeout = errors.New("no complete response header within the connect timeout")

func dialFailure(ctx context.Context, err error) *failure {
	var proxied *proxy.Error
	switch {
	case http1.IsTimeout(ctx, err):
		return &failure{reason: ReasonConnectTimeout, err: fmt.Errorf("%w (dial): %w", errConnectTimeout, err)}
	case errors.As(err, &proxied):
		return &failure{reason: ReasonProxy, err: err}
	case http1.IsUnknownName(err):
		return &failure{reason: ReasonDNS, err: err}
	default:
		return &failure{reason: ReasonRefused, err: err}
	}
}

func proxyFailure(ctx context.Context, err error) *failure {
	if http1.IsTimeout(ctx, err) {
		return &failure{reason: ReasonConnectTimeout, err: fmt.Errorf("%w: %w", errConnectTimeout, err)}
	}
	return &failure{reason: ReasonProxy, err: err}
}

// operationFailure returns the failure for an error of an operation other than the dial, up to the end of the response
// header. fallback is the reason if err determines none.
func operationFailure(ctx context.Context, fallback Reason, operation string, err error) *failure {
	f := &failure{reason: fallback, err: fmt.Errorf("%s: %w", operation, err)}
	switch {
	case http1.IsTimeout(ctx, err):
		f.reason = ReasonConnectTimeout
		f.err = fmt.Errorf("%w (%s): %w", errConnectTimeout, operation, err)
	case errors.Is(err, errHeaderTooLong):
		f.reason = ReasonTooLong
	case fallback == ReasonTLS:
	case isReset(err):
		f.reason = ReasonReset
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		f.reason = ReasonTruncated
	}
	return f
}

// isReset reports whether an error counts as a reset of the connection, as TCP timeouts and lost routes also do.
func isReset(err error) bool {
	return errors.Is(err, errResetByPeer) || errors.Is(err, errUnprocessed) || http1.IsReset(err) || http1.IsUnreachable(err) ||
		http1.IsOneOf(err, syscall.ETIMEDOUT)
}

func readFailure(err error) *failure {
	f := &failure{reason: ReasonError, err: fmt.Errorf("read the stream: %w", err), status: http.StatusOK}
	switch {
	case errors.Is(err, io.EOF):
		f.reason, f.err = ReasonServer, nil
	case errors.Is(err, errCut):
		f.reason, f.err = ReasonCut, err
	case errors.Is(err, errIdle):
		f.reason, f.err = ReasonIdle, err
	case errors.Is(err, io.ErrUnexpectedEOF):
		f.reason = ReasonTruncated
		if err == io.ErrUnexpectedEOF { // the parser returns this value without details
			f.err = errTruncatedEvent
		}
	case errors.Is(err, eventstream.ErrTooLong):
		f.reason = ReasonTooLong
	case isReset(err):
		f.reason = ReasonReset
	}
	return f
}

var (
	errIdle           = errors.New("no byte from the server within the idle timeout")
	errTruncatedEvent = fmt.Errorf("the stream ended inside an event: %w", io.ErrUnexpectedEOF)
)
