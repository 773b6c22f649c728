package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A cloud asks AWS through its command line, which finds credentials as every AWS tool does.
type cloud struct{ region, account, arn string }

// An apiError is an error that a service of AWS answers.
type apiError struct{ Code, Operation, Message string }

func (e *apiError) Error() string { return fmt.Sprintf("%s: %s: %s", e.Operation, e.Code, e.Message) }

// code returns the code of an AWS error, "" for other errors.
func code(err error) string {
	var refused *apiError
	if errors.As(err, &refused) {
		return refused.Code
	}
	return ""
}

var apiErrorText = regexp.MustCompile(`An error occurred \(([^)]+)\) when calling the (\w+) operation[^:]*: (.*)`)

// connect fails without valid credentials.
func connect(ctx context.Context, region string) (*cloud, error) {
	if _, err := exec.LookPath("aws"); err != nil {
		return nil, errors.New("the AWS command line is not installed: https://docs.aws.amazon.com/cli/latest/userguide/getting-started-install.html")
	}
	c := &cloud{region: region}
	var caller struct{ Account, Arn string }
	if err := c.ask(ctx, &caller, "sts", "get-caller-identity"); err != nil { // every user may ask
		return nil, fmt.Errorf("there are no valid AWS credentials: log in (aws sso login), or set AWS_PROFILE or AWS_ACCESS_KEY_ID (%w)", err)
	}
	c.account, c.arn = caller.Account, caller.Arn
	return c, nil
}

// ask runs the AWS command line and parses its answer, which may be nil.
func (c *cloud) ask(ctx context.Context, answer any, args ...string) error {
	cmd := exec.CommandContext(ctx, "aws", append(args, "--region", c.region, "--output", "json")...) //nolint:gosec // G204: without a shell
	cmd.Env = append(os.Environ(), "AWS_PAGER=")
	var said bytes.Buffer
	cmd.Stderr = &said
	text, err := cmd.Output()
	if found := apiErrorText.FindStringSubmatch(said.String()); err != nil && found != nil {
		return &apiError{Code: found[1], Operation: found[2], Message: found[3]}
	}
	if err != nil {
		return fmt.Errorf("aws %s %s: %s", args[0], args[1], cmp.Or(strings.TrimSpace(said.String()), err.Error()))
	}
	if answer == nil || len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	return json.Unmarshal(text, answer)
}

// maxParameters is how many Systems Manager gives at once.
const maxParameters = 10

// parameters returns the values of parameters, decrypted.
func (c *cloud) parameters(ctx context.Context, names ...string) (map[string]string, error) {
	values := map[string]string{}
	for some := range slices.Chunk(names, maxParameters) {
		var answer struct {
			Parameters        []struct{ Name, Value string }
			InvalidParameters []string
		}
		if err := c.ask(ctx, &answer, append([]string{"ssm", "get-parameters", "--with-decryption", "--names"}, some...)...); err != nil {
			return nil, fmt.Errorf("read parameters: %w", err)
		}
		if len(answer.InvalidParameters) > 0 {
			return nil, fmt.Errorf("the parameter %s is gone: `make aws-up` makes what is missing", answer.InvalidParameters[0])
		}
		for _, p := range answer.Parameters {
			values[p.Name] = p.Value
		}
	}
	return values, nil
}

// A tag is a tag of all that terraform makes: Run has the name of the deployment, Project is the same for all.
type tag struct{ Key, Value string }

func (t tag) String() string { return t.Key + "=" + t.Value }

// A host is an instance that is not terminated.
type host struct {
	ID, Type, Run, Owner string
	Launch               time.Time
	Cores, Threads       int
}

// hostQuery makes hosts of the answer of EC2.
const hostQuery = "Reservations[].Instances[].{ID:InstanceId,Type:InstanceType,Launch:LaunchTime,Cores:CpuOptions.CoreCount," +
	"Threads:CpuOptions.ThreadsPerCore,Run:Tags[?Key=='Run']|[0].Value,Owner:Tags[?Key=='Owner']|[0].Value}"

// hosts returns the hosts of the region, those with a tag if one is given.
func (c *cloud) hosts(ctx context.Context, of tag) (all []host, err error) {
	args := []string{"ec2", "describe-instances", "--query", hostQuery, "--filters", "Name=instance-state-name,Values=pending,running,shutting-down,stopping,stopped"}
	if of != (tag{}) {
		args = append(args, "Name=tag:"+of.Key+",Values="+of.Value)
	}
	err = c.ask(ctx, &all, args...)
	return all, err
}

// An object is one in a bucket.
type object struct {
	Key          string
	LastModified time.Time
}

// objects returns the objects of a bucket.
func (c *cloud) objects(ctx context.Context, bucket, prefix string) ([]object, error) {
	var all []object
	err := c.ask(ctx, &all, "s3api", "list-objects-v2", "--bucket", bucket, "--prefix", prefix, "--query", "Contents[].{Key:Key,LastModified:LastModified}")
	return all, err
}

// pending is the value of a parameter before its host has stored one.
const pending = "pending"

var errTooLong = errors.New("it took too long")

// poll asks until the answer is yes or an error, with a pause in between; errTooLong after limit.
func poll(ctx context.Context, pause, limit time.Duration, ask func() (yes bool, err error)) error {
	for begun := time.Now(); ; {
		yes, err := ask()
		switch {
		case yes || err != nil:
			return err
		case time.Since(begun) > limit:
			return errTooLong
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}
