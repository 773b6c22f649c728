package main

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// A cloud calls AWS through the AWS CLI. Account and ARN identify the caller.
type cloud struct{ region, Account, ARN string }

// An apiError is an error that an AWS service returns.
type apiError struct{ Code, Operation, Message string }

func (e *apiError) Error() string { return fmt.Sprintf("%s: %s: %s", e.Operation, e.Code, e.Message) }

// code returns the code of an AWS error, or "" for any other error.
func code(err error) string {
	var api *apiError
	if errors.As(err, &api) {
		return api.Code
	}
	return ""
}

var apiErrorText = regexp.MustCompile(`An error occurred \(([^)]+)\) when calling the (\w+) operation[^:]*: (.*)`)

// connect returns a cloud. It returns an error if the AWS CLI is not installed, or cannot identify the caller.
func connect(ctx context.Context, region string) (*cloud, error) {
	if _, err := exec.LookPath("aws"); err != nil {
		return nil, errors.New("the AWS CLI is not installed; install it: " +
			"https://docs.aws.amazon.com/cli/latest/userguide/getting-started-install.html")
	}
	c := &cloud{region: region}
	if err := c.call(ctx, c, "sts", "get-caller-identity"); err != nil { // needs no permission
		return nil, fmt.Errorf("identify the caller of AWS: %w; log in (aws sso login), set AWS_PROFILE or AWS_ACCESS_KEY_ID, or check the network", err)
	}
	return c, nil
}

// call runs the AWS CLI and parses its output into result, which may be nil. An error of AWS is an *apiError.
func (c *cloud) call(ctx context.Context, result any, args ...string) error {
	cmd := exec.CommandContext(ctx, "aws", append(args, "--region", c.region, "--output", "json")...) // #nosec G204 -- without a shell
	cmd.Env = append(os.Environ(), "AWS_PAGER=")
	var failure bytes.Buffer
	cmd.Stderr = &failure
	text, err := cmd.Output()
	if found := apiErrorText.FindStringSubmatch(failure.String()); err != nil && found != nil {
		return &apiError{Code: found[1], Operation: found[2], Message: found[3]}
	}
	if err != nil {
		return fmt.Errorf("aws %s %s: %w: %s", args[0], args[1], err, strings.TrimSpace(failure.String()))
	}
	if result == nil || len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	return json.Unmarshal(text, result)
}

// A host is an instance that is not terminated.
type host struct {
	ID, Type, State, Run, Owner string // Owner is "unknown" without the tag
	Launch                      time.Time
	Cores, Threads              int // Threads is the number of threads per core
}

const hostQuery = "Reservations[].Instances[].{ID:InstanceId,Type:InstanceType,State:State.Name,Launch:LaunchTime,Cores:CpuOptions.CoreCount," +
	"Threads:CpuOptions.ThreadsPerCore,Run:Tags[?Key=='Run']|[0].Value,Owner:Tags[?Key=='Owner']|[0].Value}"

func (c *cloud) hosts(ctx context.Context, filters ...string) (all []host, err error) {
	err = c.call(ctx, &all, append([]string{"ec2", "describe-instances", "--query", hostQuery, "--filters",
		"Name=instance-state-name,Values=pending,running,shutting-down,stopping,stopped"}, filters...)...)
	for i := range all {
		all[i].Owner = cmp.Or(all[i].Owner, "unknown")
	}
	return all, err
}

func tagFilter(key, value string) string { return "Name=tag:" + key + ",Values=" + value }

// unreachableLimit is the time for which poll continues without AWS, because a laptop may lose its network or sleep.
const unreachableLimit = 5 * time.Minute

// poll calls ready until ready returns true, a refusal, or an AWS error other than ThrottlingException. After other
// errors it retries for unreachableLimit. After limit it returns context.DeadlineExceeded.
func poll(ctx context.Context, pause, limit time.Duration, ready func() (bool, error)) error {
	for start, lastResponse := time.Now(), time.Now(); ; {
		done, err := ready()
		isFinal := errors.As(err, new(refusal)) || code(err) != "" && code(err) != "ThrottlingException"
		canRetry := err != nil && !isFinal && time.Since(lastResponse) < unreachableLimit
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case canRetry:
			fmt.Printf("%v; retrying for %v\n", err, (unreachableLimit - time.Since(lastResponse)).Round(time.Second))
		case done || err != nil:
			return err
		case time.Since(start) > limit:
			return context.DeadlineExceeded
		default:
			lastResponse = time.Now()
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// remedies has a line for each known AWS error: a regular expression for the text of the error, a tab, then the cause
// and the remedy.
//
//go:embed remedies.txt
var remedies string

// explain returns the cause and the remedy of an error of terraform or AWS, or "" for an unknown error.
func explain(text string) string {
	for line := range strings.Lines(remedies) {
		pattern, remedy, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if found := regexp.MustCompile(pattern).FindString(text); found != "" {
			return strings.TrimSuffix(found, ":") + ": " + remedy
		}
	}
	return ""
}
