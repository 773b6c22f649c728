package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ssm"
)

// A finding is one row of what `soak-aws check` says.
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
func (d *deployment) inspect(ctx context.Context, compose, image string) error {
	if err := d.init(ctx); err != nil {
		return err
	}
	s, err := d.settings(ctx)
	if err != nil {
		return err
	}
	c, err := connect(ctx, s.Region)
	if err != nil {
		return err
	}
	findings := []finding{c.checkWho(ctx, s), d.affordable(s), c.checkZones(ctx, s), c.checkQuota(ctx, s)}
	findings = append(findings, c.checkDryRuns(ctx, s)...)
	findings = append(findings, c.checkBudget(ctx, s), checkRunnerImage(image, s), checkImages(ctx, compose), checkTunnel(s), c.checkLife(ctx, s))
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

func (c *cloud) checkWho(ctx context.Context, s settings) finding {
	account, arn, err := c.whoAmI(ctx)
	if err != nil {
		return fail("credentials", "AWS does not take them: %v", err)
	}
	return ok("credentials", "%s in account %s, region %s", arn, account, s.Region)
}

// whoAmI is whose credentials these are. Every user may ask.
func (c *cloud) whoAmI(ctx context.Context) (account, arn string, err error) {
	var answer struct {
		Account string `xml:"GetCallerIdentityResult>Account"`
		ARN     string `xml:"GetCallerIdentityResult>Arn"`
	}
	err = c.api.ask(ctx, request{service: "sts"}, "GetCallerIdentity", "2011-06-15", &answer)
	return answer.Account, answer.ARN, err
}

func (c *cloud) checkZones(ctx context.Context, s settings) finding {
	const what = "zones"
	var zones []string
	for i, kind := range s.types() {
		offering, err := c.zonesOffering(ctx, kind)
		if err != nil {
			return unanswered(what, err)
		}
		if i == 0 {
			zones = offering
		}
		zones = slices.DeleteFunc(zones, func(z string) bool { return !slices.Contains(offering, z) })
	}
	slices.Sort(zones)
	kinds := strings.Join(s.types(), " and ")
	switch {
	case len(zones) == 0:
		return fail(what, "no zone of %s offers %s: choose another type or region", s.Region, kinds)
	case s.Zone != "" && !slices.Contains(zones, s.Zone):
		return fail(what, "%s does not offer %s; these do: %s", s.Zone, kinds, strings.Join(zones, ", "))
	}
	return ok(what, "%s offered in %s", kinds, strings.Join(zones, ", "))
}

func (c *cloud) checkQuota(ctx context.Context, s settings) finding {
	const what, code = "vCPU quota", "L-1216C47A"
	var needed int
	for kind, count := range s.hosts() {
		if !isStandard(kind) {
			continue
		}
		each, err := c.vcpus(ctx, kind)
		if err != nil {
			return unanswered(what, err)
		}
		needed += count * each
	}
	text, err := c.api.send(ctx, request{service: "servicequotas", target: "ServiceQuotasV20190624.GetServiceQuota", body: `{"ServiceCode":"ec2","QuotaCode":"` + code + `"}`})
	if err != nil {
		return unanswered(what, err)
	}
	var answer struct{ Quota struct{ Value float64 } }
	if err := json.Unmarshal(text, &answer); err != nil {
		return unanswered(what, err)
	}
	hosts, err := c.instances(ctx, tag{})
	if err != nil {
		return unanswered(what, err)
	}
	used := 0
	for _, h := range hosts {
		if isStandard(h.Type) && h.tag("Run") != s.Name { // its own are counted as needed
			used += h.Cores * h.Threads
		}
	}
	quota := int(answer.Quota.Value)
	if used+needed > quota {
		return fail(what, "%d are needed, and %d of %d are in use: ask for more under Service Quotas (EC2, %s), or take fewer or smaller hosts", needed, used, quota, code)
	}
	return ok(what, "%d needed, %d of %d in use", needed, used, quota)
}

// checkDryRuns asks EC2 whether these credentials may start such hosts. It starts none and does not check capacity.
func (c *cloud) checkDryRuns(ctx context.Context, s settings) (findings []finding) {
	for _, kind := range s.types() {
		what := "start " + kind
		ami, err := c.ubuntu(ctx, s.architecture(kind))
		if err != nil {
			findings = append(findings, unanswered(what, err))
			continue
		}
		var refused *apiError
		err = c.ec2(ctx, "RunInstances", &struct{}{}, "DryRun", "true", "ImageId", ami, "InstanceType", kind, "MinCount", "1", "MaxCount", "1")
		switch {
		case !errors.As(err, &refused):
			findings = append(findings, unanswered(what, err))
		case refused.Code == "DryRunOperation":
			findings = append(findings, ok(what, "these credentials may (a dry run: whether there is capacity shows only the start)"))
		case refused.Code == "VPCIdNotSpecified":
			findings = append(findings, note(what, "could not be tried, since the account has no default VPC"))
		default:
			findings = append(findings, fail(what, "%v. %s", refused, explain(refused.Code+":")))
		}
	}
	return findings
}

// ubuntu is the image of the hosts, as modules/host has it.
func (c *cloud) ubuntu(ctx context.Context, architecture string) (string, error) {
	name := "/aws/service/canonical/ubuntu/server/24.04/stable/current/" + architecture + "/hvm/ebs-gp3/ami-id"
	answer, err := c.ssm.GetParameters(ctx, &ssm.GetParametersInput{Names: []string{name}})
	switch {
	case err != nil:
		return "", err
	case len(answer.Parameters) != 1:
		return "", fmt.Errorf("there is no %s", name)
	}
	return *answer.Parameters[0].Value, nil
}

func (c *cloud) checkBudget(ctx context.Context, s settings) finding {
	const what = "budget"
	if s.Budget == 0 {
		return note(what, "none is made (budget_usd = 0): nothing warns of costs")
	}
	account, _, err := c.whoAmI(ctx)
	if err != nil {
		return unanswered(what, err)
	}
	_, err = c.api.send(ctx, budgets("DescribeBudgets", fmt.Sprintf(`{"AccountId":%q,"MaxResults":1}`, account)))
	var refused *apiError
	switch {
	case errors.As(err, &refused) && strings.Contains(refused.Code, "AccessDenied"):
		return fail(what, "these credentials may not see budgets: ask for budgets:ViewBudget and budgets:ModifyBudget, or set budget_usd = 0")
	case err != nil:
		return unanswered(what, err)
	}
	return ok(what, "budgets may be seen; making one of %g USD needs budgets:ModifyBudget, which cannot be tried", s.Budget)
}

func checkRunnerImage(file string, s settings) finding {
	const what = "runners' image"
	if s.RunnerNodes == 0 {
		return note(what, "none is needed (runner_node_count = 0)")
	}
	if _, err := os.Stat(file); err != nil {
		return note(what, "is not built yet; `make aws-up` builds it for linux/%s", s.RunnerArch)
	}
	images, err := readImages(file)
	if err == nil {
		err = images.fits(s.RunnerArch)
	}
	if err != nil {
		return note(what, "%v; `make aws-up` builds it anew", err)
	}
	return ok(what, "%s is for linux/%s, as its hosts are", file, s.RunnerArch)
}

// checkTunnel: a soak that cannot reach the stack from here has paid for hosts in vain.
func checkTunnel(s settings) finding {
	const what = "way in"
	err := tunnelTools()
	switch {
	case err != nil && s.RunnerNodes == 0:
		return note(what, "Grafana and Prometheus cannot be reached: %v", err)
	case err != nil:
		return fail(what, "%v", err)
	}
	return ok(what, "the AWS command line and its Session Manager plugin are here")
}

func (c *cloud) checkLife(ctx context.Context, s settings) finding {
	const what = "time to live"
	ttl := time.Duration(s.TTLMinutes) * time.Minute
	hosts, err := c.instances(ctx, tag{"Run", s.Name})
	switch {
	case err != nil:
		return unanswered(what, err)
	case len(hosts) == 0:
		return ok(what, "no host is there yet; each ends itself %v after its start", ttl)
	}
	end, err := c.end(ctx, s.Name, "/"+s.Name+"/end", ttl)
	if err != nil {
		return unanswered(what, err)
	}
	left := time.Until(end).Round(time.Minute)
	return ok(what, "%d hosts are there and end at %s, in %v (`bin/soak-aws extend` moves it)", len(hosts), end.UTC().Format(time.TimeOnly+" MST"), left)
}
