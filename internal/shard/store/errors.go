package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// maxBytes is the maximum size of a file that a store returns. No run leaves a larger file.
const maxBytes = 2 << 30

// A tooLargeError is the error of a file in a bucket that exceeds maxBytes.
type tooLargeError int64

func (size tooLargeError) Error() string {
	return fmt.Sprintf("file must have at most %d bytes, got %d", int64(maxBytes), int64(size))
}

type retryKey struct{}

// OnRetry returns a context with which a store reports retries in sentences. report must be safe for concurrent use.
func OnRetry(ctx context.Context, report func(sentence string)) context.Context {
	return context.WithValue(ctx, retryKey{}, report)
}

func reportRetry(ctx context.Context, sentence string) {
	if report, ok := ctx.Value(retryKey{}).(func(string)); ok {
		report(sentence)
	}
}

// isPermanent reports whether a retry would fail for the same reason. This is the case for a refusal, for example, but
// not for a network error.
func isPermanent(err error) bool {
	var large tooLargeError
	if errors.As(err, &large) {
		return true
	}
	var canceled *smithy.CanceledError
	if errors.As(err, &canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	var answer *smithyhttp.ResponseError
	if errors.As(err, &answer) {
		switch code := answer.HTTPStatusCode(); code {
		case 0, http.StatusRequestTimeout, http.StatusTooManyRequests: // 0: no response
			return false
		default:
			return code < 500 && apiCode(err) != "RequestTimeout" // S3 sends it with status 400
		}
	}
	return lacksCredentials(err) || lacksRegion(err)
}

// assumesRole reports whether the SDK requested credentials with the token of a service account, as in a pod of EKS.
func assumesRole(err error) bool {
	return strings.Contains(err.Error(), "AssumeRoleWithWebIdentity")
}

func apiCode(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

// lacksCredentials reports whether the SDK found no credentials. The SDK has no type for this error.
func lacksCredentials(err error) bool {
	return strings.Contains(err.Error(), "get credentials:")
}

func lacksRegion(err error) bool {
	return strings.Contains(err.Error(), "Invalid region")
}

func explain(err error) error {
	switch code := apiCode(err); {
	case assumesRole(err) && isPermanent(err):
		return withCause("the role of the service account is refused; add this cluster and the account soak-runner to its trust policy (docs/distributed.md)", err)
	case strings.Contains(err.Error(), "retrieve jwt from provide source"):
		return withCause("the token of the service account is unreadable (AWS_WEB_IDENTITY_TOKEN_FILE)", err)
	case code == "NoSuchBucket":
		return withCause("the bucket does not exist; create it, or correct its name and region", err)
	case code == "AccessDenied" || code == "Forbidden":
		return withCause("access denied; grant the credentials s3:PutObject to run, and s3:GetObject and s3:ListBucket to merge", err)
	case code == "ExpiredToken" || code == "InvalidAccessKeyId" || code == "SignatureDoesNotMatch":
		return withCause("the server does not accept the credentials; renew AWS_PROFILE or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", err)
	case lacksRegion(err):
		return withCause("the region is unknown; set AWS_REGION or ?region=", err)
	case lacksCredentials(err) && !assumesRole(err):
		return withCause("no credentials; set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the machine a role", err)
	}
	return withCause("", err)
}

type sentence struct {
	text string
	error
}

// withCause returns err with a message that starts with the advice and has no layers of the SDK.
func withCause(advice string, err error) error {
	if err == nil {
		return nil
	}
	cause := err.Error()
	var api smithy.APIError
	var dial *net.OpError
	switch {
	case errors.As(err, &api):
		cause = strings.TrimSuffix(api.ErrorCode()+": "+api.ErrorMessage(), ": ")
	case errors.As(err, &dial):
		cause = dial.Error()
	}
	if advice != "" {
		cause = advice + " (" + cause + ")"
	}
	return sentence{cause, err}
}

func (s sentence) Error() string { return s.text }
func (s sentence) Unwrap() error { return s.error }
