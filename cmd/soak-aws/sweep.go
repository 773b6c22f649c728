package main

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// sweep lists the resources of one deployment, or of all, by their tags, for a lost state of terraform. With endHosts it terminates
// hosts, which cost the most; for the rest it prints the commands that delete them.
func sweep(ctx context.Context, region, name string, endHosts bool) error {
	c, err := connect(ctx, region)
	if err != nil {
		return err
	}
	of := tag{"Project", "sse-soak"}
	if name != "" {
		of = tag{"Run", name}
	}
	hosts, err := c.instances(ctx, of)
	if err != nil {
		return err
	}
	left, _, err := c.left(ctx, of)
	if err != nil {
		return err
	}
	unlisted, err := c.unlisted(ctx, region, name)
	if err != nil {
		fmt.Printf("roles and budgets, which carry no tag that can be searched for, could not be asked for: %v\n", err)
	}
	left = append(left, unlisted...)
	if len(left) == 0 {
		fmt.Printf("nothing is left in %s that carries the tag %s\n", region, of)
		return nil
	}
	fmt.Printf("%d things in %s carry the tag %s, or the name of such a deployment:\n", len(left), region, of)
	for _, thing := range left {
		fmt.Printf("  %s\n      %s\n", thing, remove(region, thing))
		if bucket, ok := strings.CutPrefix(thing, "arn:aws:s3:::"); ok {
			if archives, err := c.archives(ctx, bucket); err == nil && len(archives) > 0 {
				fmt.Printf("      it holds evidence of runs: %s\n", strings.Join(archives, ", "))
			}
		}
	}
	switch {
	case len(hosts) == 0:
		return nil
	case !endHosts:
		fmt.Printf("%d of them are hosts, which cost money: `soak-aws sweep --end-hosts` ends them\n", len(hosts))
		return nil
	}
	var parameters []string
	for i, h := range hosts {
		parameters = append(parameters, fmt.Sprintf("InstanceId.%d", i+1), h.ID)
	}
	if err := c.ec2(ctx, "TerminateInstances", &struct{}{}, parameters...); err != nil {
		return fmt.Errorf("terminate hosts: %w; they continue to cost money", err)
	}
	fmt.Printf("%d hosts are being terminated; their disks go with them\n", len(hosts))
	return nil
}

// sweep uses the region of the settings by default.
func (d *deployment) sweep(ctx context.Context, region string, endHosts bool) error {
	if region == "" {
		if err := d.init(ctx); err != nil {
			return fmt.Errorf("%w; --region needs no terraform", err)
		}
		s, err := d.settings(ctx)
		if err != nil {
			return fmt.Errorf("%w; --region needs no terraform", err)
		}
		region = s.Region
	}
	return sweep(ctx, region, d.name, endHosts)
}

// removals are how things are deleted, by what their ARN or id has in it. ARN and region are filled in by name.
var removals = []struct{ has, how string }{
	{"i-", "aws ec2 terminate-instances --region REGION --instance-ids ID"},
	{"vol-", "aws ec2 delete-volume --region REGION --volume-id ID    # a host's goes with it"},
	{":launch-template/", "aws ec2 delete-launch-template --region REGION --launch-template-id ID"},
	{":vpc/", "delete it in the VPC console, which takes subnets, route tables, gateways, endpoints and security groups along"},
	{"arn:aws:ec2:", "goes with its VPC"},
	{"arn:aws:s3:", "empty it and delete it in the S3 console: it keeps versions"},
	{":parameter/", "aws ssm delete-parameter --region REGION --name NAME"},
	{":schedule-group/", "aws scheduler delete-schedule-group --region REGION --name ID"},
	{":budget/", "aws budgets delete-budget --account-id ACCOUNT --budget-name ID"},
	{"arn:aws:iam:", "delete it in the IAM console; it costs nothing"},
}

// remove returns the command that deletes a resource.
func remove(region, thing string) string {
	arn, _, _ := strings.Cut(thing, " ")
	parts := append(strings.SplitN(arn, ":", 6), "", "", "", "", "", "")
	_, name, _ := strings.Cut(parts[5], "/")
	id := arn
	if name != "" {
		id = name
	}
	for _, r := range removals {
		if strings.HasPrefix(arn, r.has) || strings.HasPrefix(r.has, ":") && strings.Contains(arn, r.has) {
			return strings.NewReplacer("REGION", region, "ID", id, "NAME", "/"+name, "ACCOUNT", parts[4]).Replace(r.how)
		}
	}
	return "delete it in the AWS console"
}

// unlisted is what the list of tags does not have: roles, and the budget.
func (c *cloud) unlisted(ctx context.Context, region, name string) (arns []string, err error) {
	if name == "" {
		name = "sse-soak"
	}
	roles, err := c.roles(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range roles {
		for _, of := range []string{"stack", "runners", "agents", "end"} {
			if strings.HasPrefix(r.Name, name+"-"+of+"-") {
				arns = append(arns, r.ARN)
			}
		}
	}
	account, _, err := c.whoAmI(ctx)
	if err != nil {
		return arns, err
	}
	body, err := json.Marshal(map[string]string{"AccountId": account, "BudgetName": name + "-" + region})
	if err != nil {
		return arns, err
	}
	if gone, err := c.misses(ctx, budgets("DescribeBudget", string(body))); err != nil || gone {
		return arns, err
	}
	return append(arns, "arn:aws:budgets::"+account+":budget/"+name+"-"+region), nil
}

// A role is one of IAM.
type role struct {
	Name string `xml:"RoleName"`
	ARN  string `xml:"Arn"`
}

// roles are all of the account.
func (c *cloud) roles(ctx context.Context) (all []role, err error) {
	marker := []string{}
	for {
		text, err := c.api.send(ctx, iam("ListRoles", slices.Concat([]string{"MaxItems", "1000"}, marker)...))
		if err != nil {
			return nil, err
		}
		var page struct {
			Roles     []role `xml:"ListRolesResult>Roles>member"`
			Truncated bool   `xml:"ListRolesResult>IsTruncated"`
			Marker    string `xml:"ListRolesResult>Marker"`
		}
		if err := xml.Unmarshal(text, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Roles...)
		switch {
		case !page.Truncated:
			return all, nil
		case page.Marker == "":
			return nil, errors.New("list roles: IAM lists more, but gave no marker for the next page")
		}
		marker = []string{"Marker", page.Marker}
	}
}
