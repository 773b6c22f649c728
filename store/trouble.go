package store

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// permanent says that the same again would end the same: the server understood and refused, or
// there is nothing to sign a request with. What the network does may pass.
func permanent(err error) bool {
	var canceled *smithy.CanceledError
	if errors.As(err, &canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	var answer *smithyhttp.ResponseError
	if errors.As(err, &answer) {
		switch code := answer.HTTPStatusCode(); code {
		case 0, http.StatusRequestTimeout, http.StatusTooManyRequests: // 0: no answer came
			return false
		default:
			return code < 500 && apiCode(err) != "RequestTimeout" // S3 says that one with a 400
		}
	}
	return noCredentials(err) || noRegion(err)
}

func apiCode(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

// The SDK has no types for these two.
func noCredentials(err error) bool {
	return strings.Contains(err.Error(), "get credentials:")
}

func noRegion(err error) bool {
	return strings.Contains(err.Error(), "Invalid region")
}

// explain puts a sentence before what the SDK says where there is something to do about it.
func explain(err error) error {
	switch code := apiCode(err); {
	case code == "NoSuchBucket":
		return fmt.Errorf("the bucket does not exist; create it, or correct its name and region (%w)", err)
	case code == "AccessDenied" || code == "Forbidden":
		return fmt.Errorf("access denied; the credentials need s3:PutObject to run, s3:GetObject and s3:ListBucket to merge (%w)", err)
	case code == "ExpiredToken" || code == "InvalidAccessKeyId" || code == "SignatureDoesNotMatch":
		return fmt.Errorf("the server does not accept the credentials; renew AWS_PROFILE or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (%w)", err)
	case noRegion(err):
		return fmt.Errorf("the region is unknown; set AWS_REGION or ?region= (%w)", err)
	case noCredentials(err):
		return fmt.Errorf("there are no credentials; set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the machine a role (%w)", err)
	}
	return err
}
