package main

import (
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
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	signer "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// An ec2 asks EC2 two questions by its query API. The SDK's package for it would take minutes and
// 3 GB of memory to compile.
type ec2 struct{ config aws.Config }

// ec2Answer is what both questions are answered with, as far as it matters.
type ec2Answer struct {
	Instances []string `xml:"reservationSet>item>instancesSet>item>instanceId"`
	Volumes   []string `xml:"volumeSet>item>volumeId"`
}

// left is the ids of hosts that are not terminated, and of volumes, that carry the tag Run.
func (e *ec2) left(ctx context.Context, name string) ([]string, error) {
	tagged := []string{"Filter.1.Name", "tag:Run", "Filter.1.Value.1", name}
	hosts, err := e.ask(ctx, "DescribeInstances", append(tagged, "Filter.2.Name", "instance-state-name",
		"Filter.2.Value.1", "pending", "Filter.2.Value.2", "running", "Filter.2.Value.3", "shutting-down", "Filter.2.Value.4", "stopping", "Filter.2.Value.5", "stopped")...)
	if err != nil {
		return nil, err
	}
	volumes, err := e.ask(ctx, "DescribeVolumes", tagged...)
	if err != nil {
		return nil, err
	}
	return append(hosts.Instances, volumes.Volumes...), nil
}

// ask sends one signed request, with parameters as name, value, name, value. Without MaxResults all comes in one answer.
func (e *ec2) ask(ctx context.Context, action string, parameters ...string) (answer ec2Answer, err error) {
	query := url.Values{"Action": {action}, "Version": {"2016-11-15"}}
	for pair := range slices.Chunk(parameters, 2) {
		query.Set(pair[0], pair[1])
	}
	endpoint := cmp.Or(os.Getenv("AWS_ENDPOINT_URL_EC2"), "https://ec2."+e.config.Region+".amazonaws.com") // as the SDK has it
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint+"/?"+query.Encode(), nil)
	if err != nil {
		return answer, err
	}
	credentials, err := e.config.Credentials.Retrieve(ctx)
	if err != nil {
		return answer, err
	}
	empty := sha256.Sum256(nil)
	err = signer.NewSigner().SignHTTP(ctx, credentials, req, hex.EncodeToString(empty[:]), "ec2", e.config.Region, time.Now())
	if err != nil {
		return answer, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer, err
	}
	if resp.StatusCode != http.StatusOK {
		return answer, fmt.Errorf("EC2 answers %s with %s: %.300s", action, resp.Status, text)
	}
	return answer, xml.Unmarshal(text, &answer)
}
