package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi"
	tagging "github.com/aws/aws-sdk-go-v2/service/resourcegroupstaggingapi/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
)

// verifyGone asks AWS, not the state, whether anything that carries the tag is left, but for a bucket that is kept.
func (c *cloud) verifyGone(ctx context.Context, name, region, kept string, lag, every time.Duration) error {
	var left, listed []string
	err := poll(ctx, every, lag, func() (gone bool, err error) {
		left, listed, err = c.left(ctx, tag{"Run", name})
		left = slices.DeleteFunc(left, func(arn string) bool { return kept != "" && arn == "arn:aws:s3:::"+kept })
		return len(left) == 0, err
	})
	switch {
	case errors.Is(err, errTooLong):
		return fmt.Errorf("%d things in %s still carry the tag Run=%s:\n  %s\n  continue:  make aws-down, or delete them in the AWS console",
			len(left), region, name, strings.Join(left, "\n  "))
	case err != nil:
		return fmt.Errorf("terraform destroyed all that it knows, but the result could not be verified: %w", err)
	}
	for _, arn := range listed {
		fmt.Printf("gone, still listed by its tag: %s\n", arn)
	}
	if kept != "" {
		fmt.Printf("nothing but the bucket is left in %s that carries the tag Run=%s\n", region, name)
		return nil
	}
	fmt.Printf("nothing is left in %s that carries the tag Run=%s\n", region, name)
	return nil
}

// left lists what still carries the tag. AWS's list of tags lags behind by minutes, and hosts keep their tags for an
// hour, so each service is asked itself: what it does not know any more is merely listed.
func (c *cloud) left(ctx context.Context, of tag) (left, listed []string, err error) {
	hosts, err := c.instances(ctx, of)
	if err != nil {
		return nil, nil, err
	}
	for _, h := range hosts {
		left = append(left, h.ID)
	}
	volumes, err := c.volumes(ctx, of)
	if err != nil {
		return nil, nil, err
	}
	left = append(left, volumes...)
	arns, err := c.tagged(ctx, of)
	if err != nil {
		return nil, nil, fmt.Errorf("list what is tagged: %w", err)
	}
	for _, arn := range arns {
		if strings.Contains(arn, ":instance/") || strings.Contains(arn, ":volume/") {
			continue // asked for above
		}
		switch gone, err := c.isGone(ctx, arn); {
		case err != nil:
			left = append(left, fmt.Sprintf("%s (whether it is there could not be asked: %v)", arn, err))
		case gone:
			listed = append(listed, arn)
		default:
			left = append(left, arn)
		}
	}
	return left, listed, nil
}

// tagged is what AWS lists under the tag.
func (c *cloud) tagged(ctx context.Context, of tag) (arns []string, err error) {
	pages := resourcegroupstaggingapi.NewGetResourcesPaginator(c.tags, &resourcegroupstaggingapi.GetResourcesInput{
		TagFilters: []tagging.TagFilter{{Key: aws.String(of.key), Values: []string{of.value}}},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, r := range page.ResourceTagMappingList {
			arns = append(arns, aws.ToString(r.ResourceARN))
		}
	}
	return arns, nil
}

// describers are the questions of EC2 for one thing, by the kind that its ARN has.
var describers = map[string][2]string{
	"internet-gateway":    {"DescribeInternetGateways", "InternetGatewayId.1"},
	"launch-template":     {"DescribeLaunchTemplates", "LaunchTemplateId.1"},
	"network-interface":   {"DescribeNetworkInterfaces", "NetworkInterfaceId.1"},
	"route-table":         {"DescribeRouteTables", "RouteTableId.1"},
	"security-group":      {"DescribeSecurityGroups", "GroupId.1"},
	"security-group-rule": {"DescribeSecurityGroupRules", "SecurityGroupRuleId.1"},
	"subnet":              {"DescribeSubnets", "SubnetId.1"},
	"vpc":                 {"DescribeVpcs", "VpcId.1"},
	"vpc-endpoint":        {"DescribeVpcEndpoints", "VpcEndpointId.1"},
}

// isGone reports whether the service of a resource no longer knows it. A resource of an unknown kind counts as there.
func (c *cloud) isGone(ctx context.Context, arn string) (bool, error) {
	parts := strings.SplitN(arn, ":", 6)
	if len(parts) < 6 {
		return false, nil
	}
	service, account, resource := parts[2], parts[4], parts[5]
	kind, id, _ := strings.Cut(resource, "/")
	switch {
	case service == "ec2" && describers[kind][0] != "":
		var answer struct {
			State string `xml:"vpcEndpointSet>item>state"`
		}
		err := c.ec2(ctx, describers[kind][0], &answer, describers[kind][1], id)
		if isNotFound(err) || strings.EqualFold(answer.State, "deleted") { // it knows an endpoint for a while
			return true, nil
		}
		return false, err
	case service == "s3":
		return c.misses(ctx, request{service: "s3", method: http.MethodHead, path: "/" + resource})
	case service == "ssm" && kind == "parameter":
		answer, err := c.ssm.GetParameters(ctx, &ssm.GetParametersInput{Names: []string{"/" + id}})
		return err == nil && slices.Contains(answer.InvalidParameters, "/"+id), err
	case service == "scheduler" && kind == "schedule-group":
		return c.misses(ctx, request{service: "scheduler", path: "/schedule-groups/" + id})
	case service == "budgets":
		body, err := json.Marshal(map[string]string{"AccountId": account, "BudgetName": id})
		if err != nil {
			return false, err
		}
		return c.misses(ctx, budgets("DescribeBudget", string(body)))
	case service == "iam" && kind == "role":
		return c.misses(ctx, iam("GetRole", "RoleName", id))
	case service == "iam" && kind == "instance-profile":
		return c.misses(ctx, iam("GetInstanceProfile", "InstanceProfileName", id))
	}
	return false, nil
}

// misses reports whether an error of AWS means that a resource does not exist.
func (c *cloud) misses(ctx context.Context, r request) (bool, error) {
	_, err := c.api.send(ctx, r)
	if isNotFound(err) {
		return true, nil
	}
	return false, err
}

// isNotFound: each service has its own words for it.
func isNotFound(err error) bool {
	var refused *apiError
	if !errors.As(err, &refused) {
		return false
	}
	return refused.Status == http.StatusNotFound || strings.Contains(refused.Code, "NotFound") || refused.Code == "NoSuchEntity"
}

// budgets is a question to AWS Budgets, which is in one place for all regions.
func budgets(action, body string) request {
	return request{service: "budgets", region: "us-east-1", host: "budgets.amazonaws.com", target: "AWSBudgetServiceGateway." + action, body: body}
}

// iam is a question to IAM, which is in one place for all regions.
func iam(action string, parameters ...string) request {
	query := url.Values{"Action": {action}, "Version": {"2010-05-08"}}
	for pair := range slices.Chunk(parameters, 2) {
		query.Set(pair[0], pair[1])
	}
	return request{service: "iam", region: "us-east-1", host: "iam.amazonaws.com", query: query}
}
