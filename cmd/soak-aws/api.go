package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	signer "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// An api asks services of AWS by signed requests. The SDK's packages for them would take minutes and
// 3 GB of memory to compile, for one question each.
type api struct{ config aws.Config }

// A request is one question to a service.
type request struct {
	service string // as a signature names it: ec2
	region  string // empty: that of the configuration
	host    string // empty: that of the service in the region
	method  string // empty: GET, or POST where there is a body
	path    string
	query   url.Values
	target  string // what is asked, of services that speak JSON
	body    string
}

// An apiError is what a service answers instead.
type apiError struct {
	Service, Code, Message string
	Status                 int
}

func (e *apiError) Error() string {
	return fmt.Sprintf("%s answers %d %s: %s", e.Service, e.Status, e.Code, e.Message)
}

// send asks, and gives the text of the answer.
func (a *api) send(ctx context.Context, r request) ([]byte, error) {
	region := cmp.Or(r.region, a.config.Region)
	endpoint := cmp.Or(os.Getenv("AWS_ENDPOINT_URL_"+strings.ToUpper(r.service)), os.Getenv("AWS_ENDPOINT_URL"), // as the SDK has it
		"https://"+cmp.Or(r.host, r.service+"."+region+".amazonaws.com"))
	method := r.method
	if method == "" && r.body == "" {
		method = http.MethodGet
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, cmp.Or(method, http.MethodPost), endpoint+cmp.Or(r.path, "/")+"?"+r.query.Encode(), strings.NewReader(r.body)) //nolint:gosec // G704: an endpoint of AWS
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(r.body))
	req.Header.Set("X-Amz-Content-Sha256", hex.EncodeToString(sum[:])) // S3 wants to see it
	if r.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.target != "" {
		req.Header.Set("X-Amz-Target", r.target)
		req.Header.Set("Content-Type", "application/x-amz-json-1.1")
	}
	credentials, err := a.config.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, err
	}
	if err := signer.NewSigner().SignHTTP(ctx, credentials, req, hex.EncodeToString(sum[:]), r.service, region, time.Now()); err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req) //nolint:gosec // G704: an endpoint of AWS
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return nil, refusal(r.service, resp, text)
	}
	return text, nil
}

var (
	codeInAnswer    = regexp.MustCompile(`<Code>([^<]+)</Code>|"__type"\s*:\s*"(?:[^"]*#)?([^"]+)"`)
	messageInAnswer = regexp.MustCompile(`<Message>([^<]+)</Message>|"[mM]essage"\s*:\s*"([^"]+)"`)
)

// refusal reads an error, which each of AWS's protocols writes in its own way.
func refusal(service string, resp *http.Response, text []byte) error {
	first := func(found [][]byte) string {
		if len(found) == 0 {
			return ""
		}
		return string(bytes.Join(found[1:], nil))
	}
	kind, _, _ := strings.Cut(resp.Header.Get("X-Amzn-Errortype"), ":")
	return &apiError{
		Service: service, Status: resp.StatusCode,
		Code:    cmp.Or(first(codeInAnswer.FindSubmatch(text)), kind, http.StatusText(resp.StatusCode)),
		Message: cmp.Or(first(messageInAnswer.FindSubmatch(text)), fmt.Sprintf("%.300s", text)),
	}
}

// ask sends a question of the query protocol (EC2, IAM, STS), with parameters as name, value, name, value, and reads the
// answer's XML. Without MaxResults all comes in one answer.
func (a *api) ask(ctx context.Context, r request, action, version string, answer any, parameters ...string) error {
	r.query = url.Values{"Action": {action}, "Version": {version}}
	for pair := range slices.Chunk(parameters, 2) {
		r.query.Set(pair[0], pair[1])
	}
	text, err := a.send(ctx, r)
	if err != nil {
		return fmt.Errorf("%s: %w", action, err)
	}
	return xml.Unmarshal(text, answer)
}
