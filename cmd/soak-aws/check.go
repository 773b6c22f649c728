package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/host/sizing"
)

// A check returns a sentence if its condition is met, and a refusal if it is not. Any other error means that the check
// is not conclusive, for example because AWS did not respond.
type check func(context.Context) (string, error)

func (c check) result(ctx context.Context) (state, sentence string) {
	sentence, err := c(ctx)
	switch {
	case err == nil:
		return "ok", sentence
	case errors.As(err, new(refusal)):
		return "FAIL", err.Error()
	}
	return "note", err.Error()
}

// A refusal is the reason why a deployment cannot or should not be created, changed or used. A retry does not help.
type refusal string

func (r refusal) Error() string { return string(r) }

func refuse(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }

// inspect runs all checks and prints their results. The checks cost nothing.
func (d *deployment) inspect(ctx context.Context) error {
	s, err := d.plannedSite(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("ok    %-17s  %s in account %s, region %s\n", "credentials", s.aws.ARN, s.aws.Account, s.settings.Region)
	count, failed := 1, 0
	row := func(name string, c check) {
		state, sentence := c.result(ctx)
		if count++; state == "FAIL" {
			failed++
		}
		fmt.Printf("%-4s  %-17s  %s\n", state, name, sentence)
	}
	row("credential expiry", s.aws.checkCredentials(defaultLength))
	row("price", s.checkPrice)
	row("name", s.checkOwner)
	row("vCPU quota", s.checkQuota)
	row("rights", s.checkRights)
	var subnet []string
	if s.settings.SubnetID != "" {
		subnet = []string{"--subnet-id", s.settings.SubnetID}
	} else {
		row("create a VPC", s.checkDryRun("vpc", "ec2", "create-vpc", "--cidr-block", "10.20.0.0/16"))
		row("create a gateway", s.checkDryRun("internet-gateway", "ec2", "create-internet-gateway"))
	}
	for _, kind := range slices.Sorted(maps.Keys(s.settings.Hosts)) {
		image := "resolve:ssm:/aws/service/canonical/ubuntu/server/24.04/stable/current/" + // the image of modules/host
			s.settings.Architectures[kind] + "/hvm/ebs-gp3/ami-id"
		command := []string{"ec2", "run-instances", "--image-id", image, "--instance-type", kind, "--count", "1"}
		row("start "+kind, s.checkDryRun("instance", append(command, subnet...)...))
	}
	row("sessions", s.checkSessions)
	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed (nothing was created)", failed, count)
	}
	return nil
}

// checkPrice returns the estimated price. With --max-usd it refuses a higher price and an unknown price.
func (s site) checkPrice(context.Context) (string, error) {
	life := time.Duration(s.settings.TTLMinutes) * time.Minute
	perHour := 0.
	table, err := sizing.ReadPrices(s.prices)
	if err == nil {
		perHour, err = table.PerHour(s.settings.Region, s.settings.Hosts, s.settings.DiskGiB)
	}
	if err != nil && s.maxUSD != 0 {
		err = refuse("the price cannot be compared with --max-usd (%s): %v", sizing.USD(s.maxUSD), err)
	}
	if err != nil {
		return "", err
	}
	cost, total := perHour*life.Hours(), fmt.Sprintf("the deployment, whose hosts terminate themselves after %v,", life)
	if err := sizing.CheckBudget(cost, s.maxUSD, total); err != nil {
		return "", refuse("%v; use fewer or smaller hosts, or a shorter ttl_minutes", err)
	}
	return fmt.Sprintf("about %s an hour with addresses and disks in %s, at prices of %s; %s until the hosts terminate themselves after %v",
		sizing.USD(perHour), s.settings.Region, table.AsOf, sizing.USD(cost), life), nil
}

// checkOwner refuses a name if hosts or parameters of that name exist, but not in the local state: they belong to
// another user or machine. checkOwner does not use the outputs, because a failed apply may have written none.
func (s site) checkOwner(ctx context.Context) (string, error) {
	const remedy = "choose another name (make aws-up NAME=sse-soak-ME), or use the state of that deployment"
	name, region := s.settings.Name, s.settings.Region
	hosts, err := s.aws.hosts(ctx, tagFilter("Run", name))
	if err != nil {
		return "", err
	}
	for _, h := range hosts {
		if s.addressesInState(ctx, "-id="+h.ID) == "" {
			return "", refuse("the host %s of %s in %s is not in the local state (owner: %s); %s", h.ID, name, region, h.Owner, remedy)
		}
	}
	values, err := s.parameters(ctx)
	if len(values) > 0 && s.addressesInState(ctx) == "" {
		return "", refuse("the parameters of %s exist in %s, but the local state is empty; %s", name, region, remedy)
	}
	return fmt.Sprintf("no other deployment in %s is called %s", region, name), err
}

func (s site) checkQuota(ctx context.Context) (string, error) {
	const quotaCode = "L-1216C47A"
	var quota float64
	err := s.aws.call(ctx, &quota, "service-quotas", "get-service-quota", "--service-code", "ec2",
		"--quota-code", quotaCode, "--query", "Quota.Value")
	hosts, hostsErr := s.aws.hosts(ctx)
	var types []host
	typesErr := s.aws.call(ctx, &types, append([]string{"ec2", "describe-instance-types", "--query",
		"InstanceTypes[].{Type:InstanceType,Cores:VCpuInfo.DefaultVCpus}", "--instance-types"}, slices.Sorted(maps.Keys(s.settings.Hosts))...)...)
	if err := errors.Join(err, hostsErr, typesErr); err != nil {
		return "", err
	}
	neededVCPUs, usedVCPUs := 0, 0
	for _, t := range types {
		if isStandard(t.Type) {
			neededVCPUs += s.settings.Hosts[t.Type] * t.Cores
		}
	}
	for _, h := range hosts { // hosts of this deployment are already counted in neededVCPUs; AWS counts no stopped host
		if h.State != "stopped" && isStandard(h.Type) && !slices.Contains(slices.Collect(maps.Values(s.output.Instances)), h.ID) {
			usedVCPUs += h.Cores * h.Threads
		}
	}
	if usedVCPUs+neededVCPUs > int(quota) {
		return "", refuse("%d are needed, but %d of %g are in use; request more under Service Quotas (EC2, %s), or use fewer or smaller hosts",
			neededVCPUs, usedVCPUs, quota, quotaCode)
	}
	return fmt.Sprintf("%d needed, %d of %g in use", neededVCPUs, usedVCPUs, quota), nil
}

// isStandard reports whether an instance type counts toward the quota of On-Demand Standard instances (L-1216C47A).
func isStandard(instanceType string) bool {
	letters := instanceType[:strings.IndexAny(instanceType+"0", "0123456789")]
	return slices.Contains(strings.Fields("a c d h i im is m r t z"), letters)
}

// checkDryRun returns a check that the credentials permit a command with the tags of the deployment.
func (s site) checkDryRun(resource string, command ...string) check {
	var tags []string
	for _, key := range slices.Sorted(maps.Keys(s.settings.Tags)) {
		tags = append(tags, "{Key="+key+",Value="+s.settings.Tags[key]+"}")
	}
	command = append(command, "--dry-run", "--tag-specifications", "ResourceType="+resource+",Tags=["+strings.Join(tags, ",")+"]")
	return func(ctx context.Context) (string, error) {
		err := s.aws.call(ctx, nil, command...)
		switch kind := code(err); kind {
		case "DryRunOperation":
			return "allowed (dry run, which does not check capacity)", nil
		case "", "VPCIdNotSpecified": // AWS did not respond, or there is no default VPC, which this dry run needs
			return "", err
		default:
			if remedy := explain(kind + ":"); remedy != "" {
				return "", refuse("%v; %s", err, remedy)
			}
			return "", refuse("%v", err)
		}
	}
}

// checkSessions checks the requirements of the tunnels that a run opens.
func (s site) checkSessions(ctx context.Context) (string, error) {
	if _, err := exec.LookPath("session-manager-plugin"); err != nil {
		return "", refuse("%s", explain("SessionManagerPlugin is not found"))
	}
	var content string // "": the account has no preferences, or they are not readable
	_ = s.aws.call(ctx, &content, "ssm", "get-document", "--name", "SSM-SessionManagerRunShell", "--query", "Content")
	if key := regexp.MustCompile(`"kmsKeyId":\s*"([^"]+)"`).FindStringSubmatch(content); key != nil {
		return "", refuse("the account encrypts sessions with the KMS key %s, which the hosts are not permitted to use; "+
			"remove it from the preferences of Session Manager", key[1])
	}
	return "the AWS CLI and its Session Manager plugin are installed", nil
}

// checkRights simulates each statement of the deployer's policy in IAM, with one example of each resource. The
// simulation includes permission boundaries.
func (s site) checkRights(ctx context.Context) (string, error) {
	c, file := s.aws, filepath.Join(s.dir, "deployer-policy.json")
	var policy struct {
		Statement []struct {
			Action, Resource []string
			Condition        map[string]map[string][]string
		}
	}
	text, err := os.ReadFile(file) // #nosec G304 -- a file of the repository
	if err == nil {
		err = json.Unmarshal(text, &policy)
	}
	arn := c.ARN
	if session, assumed := strings.CutPrefix(arn, "arn:aws:sts::"+c.Account+":assumed-role/"); err == nil && assumed {
		name, _, _ := strings.Cut(session, "/") // the ARN of a session lacks the path of its role
		err = c.call(ctx, &arn, "iam", "get-role", "--role-name", name, "--query", "Role.Arn")
	}
	var missing []string
	for _, statement := range policy.Statement {
		args := []string{"iam", "simulate-principal-policy", "--policy-source-arn", arn,
			"--query", "EvaluationResults[?EvalDecision!='allowed'].EvalActionName", "--action-names"}
		// The simulation does not accept wildcards in actions.
		args = append(args, slices.DeleteFunc(statement.Action, func(action string) bool { return strings.Contains(action, "*") })...)
		args = append(args, "--resource-arns")
		for _, resource := range statement.Resource {
			args = append(args, example(resource, c.region, c.Account))
		}
		for _, keys := range statement.Condition {
			args = append(args, "--context-entries")
			for key, values := range keys { // the condition Null accepts any value, but the key must exist
				args = append(args, "ContextKeyName="+key+",ContextKeyType=string,ContextKeyValues="+values[0])
			}
		}
		var denied []string
		if err == nil {
			err = c.call(ctx, &denied, args...)
		}
		missing = append(missing, denied...)
	}
	if err == nil && len(missing) > 0 {
		err = refuse("the credentials lack %s; grant them the permissions in %s", strings.Join(missing, ", "), file)
	}
	return "IAM allows the actions in " + file, err
}

// example returns a resource that a pattern of the policy matches.
func example(pattern, region, account string) string {
	return cmp.Or(strings.NewReplacer("arn:aws:iam::*:", "arn:aws:iam::"+account+":",
		"::*:", "::"+account+":", ":*:*:", ":"+region+":"+account+":",
		":*::", ":"+region+"::", "${aws:userid}", "me", "soak*/*", "soak/end", "*", "").Replace(pattern), "*")
}
