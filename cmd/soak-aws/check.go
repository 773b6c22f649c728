package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// A finding is one row of `soak-aws check`.
type finding struct {
	state    string // ok; note: it could not be asked, or nothing follows from it; FAIL
	what     string
	sentence string
}

func ok(what, format string, args ...any) finding {
	return finding{"ok", what, fmt.Sprintf(format, args...)}
}

func note(what, format string, args ...any) finding {
	return finding{"note", what, fmt.Sprintf(format, args...)}
}

func fail(what, format string, args ...any) finding {
	return finding{"FAIL", what, fmt.Sprintf(format, args...)}
}

// unanswered is a question that AWS did not answer. What these credentials may not ask may still work.
func unanswered(what string, err error) finding {
	return note(what, "could not be asked: %v", err)
}

// inspect asks all that can be asked before anything costs money, and prints one table.
func (d *deployment) inspect(ctx context.Context) error {
	s, err := d.initialized(ctx)
	if err != nil {
		return err
	}
	c, err := connect(ctx, s.Region)
	if err != nil {
		return err
	}
	out, err := d.outputs(ctx)
	if err != nil && !errors.Is(err, errNoOutputs) {
		return err
	}
	findings := []finding{
		ok("credentials", "%s in account %s, region %s", c.arn, c.account, s.Region), c.credentialsFor(ctx, time.Now(), defaultLength),
		d.affordable(s), d.checkOwner(ctx, c, s), c.checkQuota(ctx, s, out), c.checkRights(ctx, filepath.Join(d.dir, "deployer-policy.json")),
	}
	findings = append(append(findings, c.checkDryRuns(ctx, s)...), c.checkSessions(ctx, s))
	failed := 0
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, f := range findings {
		fmt.Fprintf(table, "%s\t%s\t%s\n", f.state, f.what, f.sentence)
		if f.state == "FAIL" {
			failed++
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed; nothing was made", failed, len(findings))
	}
	return nil
}

// checkOwner fails if the name belongs to a deployment that is not in the state here: one of somebody else, or of another machine.
// The state decides, not its outputs: an apply that failed may have written none.
func (d *deployment) checkOwner(ctx context.Context, c *cloud, s settings) finding {
	const what = "name"
	const remedy = "choose another name (make aws-up NAME=sse-soak-ME), or use the state of that deployment"
	hosts, err := c.hosts(ctx, tag{"Run", s.Name})
	if err != nil {
		return unanswered(what, err)
	}
	for _, h := range hosts {
		if d.inState(ctx, "-id="+h.ID) == "" {
			return fail(what, "the host %s of %s in %s is not in the state here; it was made by %s: %s", h.ID, s.Name, s.Region, h.Owner, remedy)
		}
	}
	if _, err := c.parameters(ctx, "/"+s.Name+"/end"); err == nil && d.inState(ctx) == "" {
		return fail(what, "the parameters of %s exist in %s, though the state here is empty: %s", s.Name, s.Region, remedy)
	}
	return ok(what, "no other deployment in %s is called %s", s.Region, s.Name)
}

func (c *cloud) checkQuota(ctx context.Context, s settings, out outputs) finding {
	const what, quotaCode = "vCPU quota", "L-1216C47A"
	needed, used := 0, 0
	for kind, count := range s.hosts() {
		var cores []int
		if err := c.ask(ctx, &cores, "ec2", "describe-instance-types", "--instance-types", kind, "--query", "InstanceTypes[].VCpuInfo.DefaultVCpus"); err != nil {
			return unanswered(what, err)
		}
		if isStandard(kind) && len(cores) == 1 {
			needed += count * cores[0]
		}
	}
	var quota float64
	if err := c.ask(ctx, &quota, "service-quotas", "get-service-quota", "--service-code", "ec2", "--quota-code", quotaCode, "--query", "Quota.Value"); err != nil {
		return unanswered(what, err)
	}
	hosts, err := c.hosts(ctx, tag{})
	if err != nil {
		return unanswered(what, err)
	}
	for _, h := range hosts {
		if isStandard(h.Type) && !out.has(h.ID) { // its own are counted as needed
			used += h.Cores * h.Threads
		}
	}
	if used+needed > int(quota) {
		return fail(what, "%d are needed, and %d of %g are in use: ask for more under Service Quotas (EC2, %s), or take fewer or smaller hosts", needed, used, quota, quotaCode)
	}
	return ok(what, "%d needed, %d of %g in use", needed, used, quota)
}

// isStandard reports whether a type counts for the quota "Running On-Demand Standard instances" (L-1216C47A).
func isStandard(kind string) bool {
	letters := kind[:strings.IndexAny(kind+"0", "0123456789")]
	return slices.Contains(strings.Fields("a c d h i im is m r t z"), letters)
}

// checkDryRuns asks EC2 whether these credentials may make what Terraform will make, with its tags. It makes nothing and does not
// check capacity.
func (c *cloud) checkDryRuns(ctx context.Context, s settings) (findings []finding) {
	try := func(what, resource string, args ...string) {
		specification := []string{"--dry-run", "--tag-specifications", "ResourceType=" + resource + ",Tags=[" + s.tagList() + "]"}
		err := c.ask(ctx, nil, append(args, specification...)...)
		switch kind := code(err); kind {
		case "":
			findings = append(findings, unanswered(what, err))
		case "DryRunOperation":
			findings = append(findings, ok(what, "these credentials may (a dry run: whether there is capacity shows only the start)"))
		case "VPCIdNotSpecified":
			findings = append(findings, note(what, "could not be tried, since the account has no default VPC"))
		default:
			findings = append(findings, fail(what, "%v. %s", err, explain(kind+":")))
		}
	}
	if s.SubnetID == "" {
		try("make a VPC", "vpc", "ec2", "create-vpc", "--cidr-block", "10.20.0.0/16")
		try("make a gateway", "internet-gateway", "ec2", "create-internet-gateway")
	}
	for _, kind := range s.types() {
		ami := "resolve:ssm:/aws/service/canonical/ubuntu/server/24.04/stable/current/" + s.architecture(kind) + "/hvm/ebs-gp3/ami-id" // as modules/host has it
		args := []string{"ec2", "run-instances", "--image-id", ami, "--instance-type", kind, "--count", "1"}
		if s.SubnetID != "" {
			args = append(args, "--subnet-id", s.SubnetID)
		}
		try("start "+kind, "instance", args...)
	}
	return findings
}

// checkSessions checks the way in: a soak that cannot reach the stack from here has paid for hosts in vain.
func (c *cloud) checkSessions(ctx context.Context, s settings) finding {
	const what = "way in"
	err := tunnelTools()
	switch {
	case err != nil && s.RunnerNodes == 0:
		return note(what, "Grafana and Prometheus cannot be reached: %v", err)
	case err != nil:
		return fail(what, "%v", err)
	}
	var content string
	var preferences struct {
		Inputs struct{ KmsKeyID string }
	}
	// An account without preferences has no such document.
	err = c.ask(ctx, &content, "ssm", "get-document", "--name", "SSM-SessionManagerRunShell", "--query", "Content")
	if err == nil && json.Unmarshal([]byte(content), &preferences) == nil && preferences.Inputs.KmsKeyID != "" {
		return fail(what, "the account encrypts sessions with the KMS key %s, which the hosts may not use: remove it from the preferences of Session Manager", preferences.Inputs.KmsKeyID)
	}
	return ok(what, "the AWS command line and its Session Manager plugin are here")
}
