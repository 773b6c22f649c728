package main

import (
	"context"
	"strings"
	"time"
)

// A tag is what terraform gives to all that it makes: Run has the name of the deployment, Project is the same for all.
type tag struct{ key, value string }

func (t tag) String() string { return t.key + "=" + t.value }

// hostsThatCost are the states of hosts that are not terminated.
var hostsThatCost = []string{"pending", "running", "shutting-down", "stopping", "stopped"}

// An instance is a host.
type instance struct {
	ID      string    `xml:"instanceId"`
	Type    string    `xml:"instanceType"`
	Launch  time.Time `xml:"launchTime"`
	Cores   int       `xml:"cpuOptions>coreCount"`
	Threads int       `xml:"cpuOptions>threadsPerCore"`
	Tags    []struct {
		Key   string `xml:"key"`
		Value string `xml:"value"`
	} `xml:"tagSet>item"`
}

// tag is the value of a tag, or nothing.
func (i instance) tag(key string) string {
	for _, t := range i.Tags {
		if t.Key == key {
			return t.Value
		}
	}
	return ""
}

// ec2 asks EC2.
func (c *cloud) ec2(ctx context.Context, action string, answer any, parameters ...string) error {
	return c.api.ask(ctx, request{service: "ec2"}, action, "2016-11-15", answer, parameters...)
}

// instances are the hosts of the region that are not terminated, and that carry the tag, if there is one.
func (c *cloud) instances(ctx context.Context, of tag) ([]instance, error) {
	parameters := []string{"Filter.1.Name", "instance-state-name"}
	for i, state := range hostsThatCost {
		parameters = append(parameters, "Filter.1.Value."+string(rune('1'+i)), state)
	}
	if of != (tag{}) {
		parameters = append(parameters, "Filter.2.Name", "tag:"+of.key, "Filter.2.Value.1", of.value)
	}
	var answer struct {
		Instances []instance `xml:"reservationSet>item>instancesSet>item"`
	}
	err := c.ec2(ctx, "DescribeInstances", &answer, parameters...)
	return answer.Instances, err
}

// volumes are the disks that carry the tag.
func (c *cloud) volumes(ctx context.Context, of tag) ([]string, error) {
	var answer struct {
		Volumes []string `xml:"volumeSet>item>volumeId"`
	}
	err := c.ec2(ctx, "DescribeVolumes", &answer, "Filter.1.Name", "tag:"+of.key, "Filter.1.Value.1", of.value)
	return answer.Volumes, err
}

// zonesOffering are the zones of the region that have a type of instance.
func (c *cloud) zonesOffering(ctx context.Context, kind string) ([]string, error) {
	var answer struct {
		Zones []string `xml:"instanceTypeOfferingSet>item>location"`
	}
	err := c.ec2(ctx, "DescribeInstanceTypeOfferings", &answer, "LocationType", "availability-zone", "Filter.1.Name", "instance-type", "Filter.1.Value.1", kind)
	return answer.Zones, err
}

// vcpus is how many a type of instance has.
func (c *cloud) vcpus(ctx context.Context, kind string) (int, error) {
	var answer struct {
		Types []struct {
			VCPUs int `xml:"vCpuInfo>defaultVCpus"`
		} `xml:"instanceTypeSet>item"`
	}
	if err := c.ec2(ctx, "DescribeInstanceTypes", &answer, "InstanceType.1", kind); err != nil {
		return 0, err
	}
	if len(answer.Types) != 1 {
		return 0, &apiError{Service: "ec2", Code: "InvalidInstanceType", Message: kind, Status: 400}
	}
	return answer.Types[0].VCPUs, nil
}

// isStandard reports whether a type counts for the quota "Running On-Demand Standard instances" (L-1216C47A).
func isStandard(kind string) bool {
	letters := kind[:strings.IndexAny(kind+"0", "0123456789")]
	switch letters {
	case "a", "c", "d", "h", "i", "im", "is", "m", "r", "t", "z":
		return true
	}
	return false
}
