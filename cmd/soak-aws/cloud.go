package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
)

// A cloud is what is asked of AWS apart from terraform.
type cloud struct {
	ssm  *ssm.Client
	api  *api
	tags *resourcegroupstaggingapi.Client
}

// connect finds credentials by AWS's usual chain.
func connect(ctx context.Context, region string) (*cloud, error) {
	c, err := config.LoadDefaultConfig(ctx, config.WithRegion(region))
	if err == nil {
		_, err = c.Credentials.Retrieve(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("there are no AWS credentials: log in (aws sso login), or set AWS_PROFILE or AWS_ACCESS_KEY_ID (%w)", err)
	}
	return &cloud{ssm: ssm.NewFromConfig(c), api: &api{config: c}, tags: resourcegroupstaggingapi.NewFromConfig(c)}, nil
}

// maxParameters is how many Systems Manager gives at once.
const maxParameters = 10

// parameters are the values of parameters, decrypted.
func (c *cloud) parameters(ctx context.Context, names ...string) (map[string]string, error) {
	values := map[string]string{}
	for len(names) > 0 {
		some := names[:min(len(names), maxParameters)]
		names = names[len(some):]
		answer, err := c.ssm.GetParameters(ctx, &ssm.GetParametersInput{Names: some, WithDecryption: aws.Bool(true)})
		if err != nil {
			return nil, fmt.Errorf("read parameters: %w", err)
		}
		if len(answer.InvalidParameters) > 0 {
			return nil, fmt.Errorf("the parameter %s is gone: `make aws-up` makes what is missing", answer.InvalidParameters[0])
		}
		for _, p := range answer.Parameters {
			values[aws.ToString(p.Name)] = aws.ToString(p.Value)
		}
	}
	return values, nil
}

// store gives a parameter another value.
func (c *cloud) store(ctx context.Context, name, value string) error {
	_, err := c.ssm.PutParameter(ctx, &ssm.PutParameterInput{Name: aws.String(name), Value: aws.String(value), Overwrite: aws.Bool(true)})
	return err
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
