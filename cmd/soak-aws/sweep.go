package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
)

// left lists what carries the tag: hosts, disks and buckets cost money, and their services are asked themselves. The rest is free,
// and AWS's list of tags has it for some time after it is gone.
func (c *cloud) left(ctx context.Context, of tag) (costs, listed []string, err error) {
	hosts, err := c.hosts(ctx, of)
	if err != nil {
		return nil, nil, err
	}
	for _, h := range hosts {
		costs = append(costs, h.ID)
	}
	var disks, tagged []string
	if err := c.ask(ctx, &disks, "ec2", "describe-volumes", "--filters", "Name=tag:"+of.Key+",Values="+of.Value, "--query", "Volumes[].VolumeId"); err != nil {
		return nil, nil, err
	}
	err = c.ask(ctx, &tagged, "resourcegroupstaggingapi", "get-resources", "--tag-filters", "Key="+of.Key+",Values="+of.Value, "--query", "ResourceTagMappingList[].ResourceARN")
	if err != nil {
		return nil, nil, fmt.Errorf("list the tagged resources: %w", err)
	}
	costs = append(costs, disks...)
	for _, arn := range tagged {
		bucket, isBucket := strings.CutPrefix(arn, "arn:aws:s3:::")
		switch {
		case strings.Contains(arn, ":instance/"), strings.Contains(arn, ":volume/"): // asked for above
		case isBucket && !isMissing(c.ask(ctx, nil, "s3api", "head-bucket", "--bucket", bucket)):
			costs = append(costs, arn)
		default:
			listed = append(listed, arn)
		}
	}
	return costs, listed, nil
}

// isMissing reports whether S3 answered that a bucket does not exist.
func isMissing(err error) bool {
	return code(err) == "404" || code(err) == "NoSuchBucket"
}

// sweep lists the resources of one deployment, or of all, by their tags, for a lost state of terraform. With endHosts it terminates
// hosts, which cost the most, after the user confirmed it.
func (d *deployment) sweep(ctx context.Context, region string, endHosts, all bool) error {
	if endHosts && d.name == "" && !all {
		return errors.New("--end-hosts ends the hosts of one deployment (--name NAME) or of everybody in the region (--all); say which")
	}
	if region == "" {
		s, err := d.initialized(ctx)
		if err != nil {
			return fmt.Errorf("%w; --region needs no terraform", err)
		}
		region = s.Region
	}
	c, err := connect(ctx, region)
	if err != nil {
		return err
	}
	of := tag{"Project", "sse-soak"}
	if d.name != "" {
		of = tag{"Run", d.name}
	}
	hosts, err := c.hosts(ctx, of)
	if err != nil {
		return err
	}
	costs, listed, err := c.left(ctx, of)
	if err != nil {
		return err
	}
	fmt.Printf("%d things in %s carry the tag %s and cost money, %d are free (delete them in the AWS console; the VPC takes what is in it along):\n  %s\n",
		len(costs), region, of, len(listed), strings.Join(append(costs, listed...), "\n  "))
	args := []string{"ec2", "terminate-instances", "--instance-ids"}
	for _, h := range hosts {
		fmt.Printf("host %s of %s, made by %s\n", h.ID, h.Run, h.Owner)
		args = append(args, h.ID)
	}
	switch {
	case len(hosts) == 0:
		return nil
	case !endHosts:
		fmt.Println("`soak-aws sweep --end-hosts` terminates hosts, which cost the most")
		return nil
	case !d.yes:
		fmt.Printf("Enter yes to terminate these %d hosts: ", len(hosts))
		if line, _ := bufio.NewReader(os.Stdin).ReadString('\n'); strings.TrimSpace(line) != "yes" {
			return errors.New("not confirmed, no host was terminated; pass --yes to skip the question")
		}
	}
	if err := c.ask(ctx, nil, args...); err != nil {
		return fmt.Errorf("terminate hosts: %w; they continue to cost money", err)
	}
	fmt.Printf("%d hosts are being terminated; their disks go with them\n", len(hosts))
	return nil
}
