package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/sizing"
)

// addTerraform adds a terraform that prints these settings and outputs to the PATH. It returns the path of a file with
// a line for each change of resources.
func addTerraform(t *testing.T, settings, outputs string) (changes string) {
	t.Helper()
	bin := addPrograms(t, map[string]string{
		"terraform": "#!/bin/sh\ncd \"${0%/*}\"\ncase $1 in console) cat settings;; output) cat outputs;; state) grep -o i-1 outputs;; apply|destroy) echo \"$@\" | sed 's/ -auto-approve$//' >>changes;; esac\n",
		"settings":  strconv.Quote(settings), "outputs": outputs,
	})
	return filepath.Join(bin, "changes")
}

// newPlannedDeployment returns a deployment whose terraform prints these settings and outputs.
func newPlannedDeployment(t *testing.T, settings, outputs string) *deployment {
	t.Helper()
	addTerraform(t, settings, outputs)
	addPrograms(t, map[string]string{"session-manager-plugin": ""})
	policy, err := os.ReadFile("../../infra/terraform/deployer-policy.json")
	require.NoError(t, err)
	d := &deployment{dir: t.TempDir()}
	require.NoError(t, os.WriteFile(filepath.Join(d.dir, "deployer-policy.json"), policy, 0o600))
	return d
}

// runCheck returns the standard output of `soak-aws check` with these settings, before any resource exists.
func runCheck(t *testing.T, settings string) (output string, err error) {
	t.Helper()
	d := newPlannedDeployment(t, settings, "{}")
	output = captureStdout(t, func() { err = d.inspect(t.Context()) })
	return output, err
}

func captureStdout(t *testing.T, f func()) string {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	stdout := os.Stdout
	os.Stdout = w
	f()
	os.Stdout = stdout
	require.NoError(t, w.Close())
	output, err := io.ReadAll(r)
	require.NoError(t, err)
	return string(output)
}

const defaults = `{"name":"sse-soak","region":"us-east-1","subnet_id":null,"hosts":{"c5.large":2},"architectures":{"c5.large":"amd64"},"ttl_minutes":180,"retention_days":30,"disk_gib":50,"connections":1200,"noop_interval_seconds":15,"tags":{"Run":"sse-soak","Team":"soak"}}`

func TestCheckOfNewDeployment(t *testing.T) {
	f := startAWS(t)
	output, err := runCheck(t, defaults)
	require.NoError(t, err, output)
	for _, row := range []string{
		`ok +credentials +arn:aws:sts::123456789012:assumed-role/dev/me in account 123456789012, region us-east-1`,
		`ok +credential expiry +valid until after a run of 1h0m0s`,
		`ok +price +about \$0.19 an hour with addresses and disks in us-east-1, at prices of \d{4}-\d\d-\d\d; \$0.56 until the hosts terminate themselves`,
		`ok +name +no other deployment in us-east-1 is called sse-soak`,
		`ok +vCPU quota +4 needed, 0 of 5 in use`,
		`ok +rights +IAM allows the actions in .*deployer-policy.json`,
		`ok +create a VPC +allowed`,
		`ok +start c5.large +allowed`,
		`ok +sessions +the AWS CLI and its Session Manager plugin are installed`,
	} {
		assert.Regexp(t, "(?m)^"+row, output)
	}
	assert.Equal(t, []string{"CreateVpc vpc Run=sse-soak", "CreateInternetGateway internet-gateway Run=sse-soak", "RunInstances instance Run=sse-soak"}, f.dryRuns)
}

func TestCheckRefusesDeployment(t *testing.T) {
	f := startAWS(t)
	f.dryRun, f.deniedAction, f.key, f.otherTypes = "UnauthorizedOperation", "iam:CreateRole", "alias/sessions", []string{"m5.large", "p3.2xlarge", "stopped m5.large"}
	t.Setenv("AWS_SESSION_TOKEN", "token")
	t.Setenv("AWS_CREDENTIAL_EXPIRATION", time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	settings := strings.Replace(defaults, `"subnet_id":null`, `"subnet_id":"subnet-1"`, 1)
	output, err := runCheck(t, settings)
	require.ErrorContains(t, err, "5 of 8 checks failed (nothing was created)")
	for _, row := range []string{
		`FAIL +credential expiry +the credentials in the environment expire at .*, before the verdict of a run of 1h0m0s; log in for longer`,
		`FAIL +vCPU quota +4 are needed, but 2 of 5 are in use`,
		`FAIL +rights +the credentials lack iam:CreateRole; grant them the permissions in .*deployer-policy.json`,
		`FAIL +start c5.large +.*UnauthorizedOperation.*the credentials lack this permission`,
		`FAIL +sessions +the account encrypts sessions with the KMS key alias/sessions`,
	} {
		assert.Regexp(t, "(?m)^"+row, output)
	}
	assert.Equal(t, []string{"RunInstances instance Run=sse-soak"}, f.dryRuns, "no VPC may be created for an existing subnet")
}

// If AWS does not respond, or its response is inconclusive, a check prints a note and does not fail.
func TestUndecidedChecksAreNotes(t *testing.T) {
	f := startAWS(t)
	f.dryRun, f.denied = "VPCIdNotSpecified", true
	output, err := runCheck(t, defaults)
	require.NoError(t, err, output)
	assert.Regexp(t, `note +start c5.large +RunInstances: VPCIdNotSpecified: `, output)
	assert.Regexp(t, `note +vCPU quota +.*AccessDeniedException`, output)
}

// The name of a deployment must be unique in an account and region.
func TestDeploymentOfAnotherUser(t *testing.T) {
	f := startAWS(t)
	plan := func(outputs string) site {
		s, err := newPlannedDeployment(t, defaults, outputs).plannedSite(t.Context())
		require.NoError(t, err)
		return s
	}
	f.hosts, f.owner, f.launched = []string{"i-1"}, "arn:aws:iam::123456789012:user/eve", time.Now()
	_, err := plan("{}").checkOwner(t.Context())
	require.ErrorAs(t, err, new(refusal))
	require.ErrorContains(t, err, "the host i-1 of sse-soak in us-east-1 is not in the local state (owner: arn:aws:iam::123456789012:user/eve); "+
		"choose another name (make aws-up NAME=sse-soak-ME)")

	f.hosts, f.parameters["/sse-soak/end"] = nil, setupPending
	_, err = plan("{}").checkOwner(t.Context())
	require.ErrorAs(t, err, new(refusal))
	require.ErrorContains(t, err, "the parameters of sse-soak exist in us-east-1, but the local state is empty")

	// A deployment in the local state belongs to this user, and its hosts do not count as vCPUs in use.
	f.hosts = []string{"i-1"}
	s := plan(`{"deployment":{"value":{"settings":{"name":"sse-soak"},"instances":{"stack":"i-1"}}}}`)
	_, err = s.checkOwner(t.Context())
	require.NoError(t, err)
	sentence, err := s.checkQuota(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "4 needed, 0 of 5 in use", sentence)
}

func TestStandardQuotaTypes(t *testing.T) {
	t.Parallel()
	for instanceType, want := range map[string]bool{"c5.large": true, "im4gn.large": true, "t3.micro": true, "p3.2xlarge": false, "inf1.xlarge": false, "g4dn.xlarge": false, "x1.16xlarge": false} {
		assert.Equal(t, want, isStandard(instanceType), instanceType)
	}
}

func TestExamplesOfResources(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{
		"*": "*", "arn:aws:iam::*:role/sse-soak-*": "arn:aws:iam::1:role/sse-soak-", "arn:aws:ssm:*:*:parameter/sse-soak*": "arn:aws:ssm:eu:1:parameter/sse-soak",
		"arn:aws:ssm:*::document/AWS-StartPortForwardingSession": "arn:aws:ssm:eu::document/AWS-StartPortForwardingSession",
		"arn:aws:scheduler:*:*:schedule/sse-soak*/*":             "arn:aws:scheduler:eu:1:schedule/sse-soak/end", "arn:aws:budgets::*:budget/sse-soak*": "arn:aws:budgets::1:budget/sse-soak",
		"arn:aws:ssm:*:*:session/${aws:userid}-*": "arn:aws:ssm:eu:1:session/me-",
	} {
		assert.Equal(t, want, example(pattern, "eu", "1"), pattern)
	}
}

// terraform.tfvars and the environment override the command line, so a difference is an error. The price of the
// settings must not exceed --max-usd.
func TestUpChecksTheSettings(t *testing.T) {
	startAWS(t)
	d := newPlannedDeployment(t, defaults, "{}")
	d.name = "second"
	_, err := d.readSettings(t.Context())
	require.ErrorContains(t, err, `terraform.tfvars has name = "sse-soak", which overrides NAME=second; delete that line`)
	d.name = ""
	require.EqualError(t, d.up(t.Context(), streams{Connections: 5000}),
		"terraform.tfvars (or a TF_VAR_ variable) has CONNECTIONS=1200 NOOP_INTERVAL=15, not CONNECTIONS=5000; "+
			"change terraform.tfvars (or a TF_VAR_ variable), or omit CONNECTIONS=5000")

	d.skipConfirm, d.maxUSD = true, .1
	require.ErrorContains(t, d.up(t.Context(), streams{}), "over the $0.10 of --max-usd; use fewer or smaller hosts, or a shorter ttl_minutes (nothing was created)")
	terraform, err := exec.LookPath("terraform")
	require.NoError(t, err)
	changes := filepath.Join(filepath.Dir(terraform), "changes")
	require.NoFileExists(t, changes, "nothing may be applied over the budget")
	d.maxUSD = 1
	require.ErrorContains(t, d.up(t.Context(), streams{}), errNoOutputs.Error(), "the fake terraform has no result")
	applied, err := os.ReadFile(changes)
	require.NoError(t, err)
	require.Regexp(t, "^apply[^\n]*\n$", string(applied))
}

// defaultSettings returns the default settings of infra/terraform, with a number of runner hosts.
func defaultSettings(nodes int) settings {
	return settings{Name: "sse-soak", Region: "us-east-1", Hosts: map[string]int{"c5.large": 1 + nodes}, TTLMinutes: 180, DiskGiB: 30 + nodes*20}
}

func TestCheckPrice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		maxUSD      float64
		edit        func(s *settings)
		state, want string
	}{
		{0, func(*settings) {}, "ok", "$0.56 until the hosts terminate themselves"},
		{.6, func(*settings) {}, "ok", "$0.19 an hour"},
		{.5, func(*settings) {}, "FAIL", "the deployment, whose hosts terminate themselves after 3h0m0s, costs $0.56, which is over the $0.50 of --max-usd"},
		{.5, func(s *settings) { s.TTLMinutes = 60 }, "ok", "$0.19 until the hosts terminate themselves"},
		{0, func(s *settings) { s.Region = "eu-central-1" }, "note", "no price for eu-central-1; pass --prices FILE"},
		{9, func(s *settings) { s.Hosts["c9x.large"] = 1 }, "FAIL", "the price cannot be compared with --max-usd ($9.00): no price for c9x.large in us-east-1"},
	} {
		s := defaultSettings(1)
		c.edit(&s)
		state, sentence := check(site{deployment: &deployment{maxUSD: c.maxUSD}, settings: s}.checkPrice).result(t.Context())
		assert.Equal(t, c.state, state, c.want)
		assert.Contains(t, sentence, c.want)
	}
}

// docs/aws.md must have the prices of the table, and sums of these prices.
func TestDocumentedPrices(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/aws.md")
	require.NoError(t, err)
	page := strings.Join(strings.Fields(string(text)), " ")
	table, err := sizing.ReadPrices("")
	require.NoError(t, err)
	region := table.Regions["us-east-1"]
	g := func(v float64) string { return "$" + strconv.FormatFloat(v, 'f', -1, 64) }
	assert.Contains(t, page, "us-east-1, on demand: c5.large "+g(region.InstanceHour["c5.large"])+"/h, a public IPv4 address "+g(region.IPv4Hour)+"/h, gp3 "+g(region.GP3Month)+" per GB-month")
	assert.Contains(t, page, table.AsOf)
	cell := func(row string, life time.Duration) {
		var sums []string
		for _, nodes := range []int{1, 3} {
			s := defaultSettings(nodes)
			perHour, err := table.PerHour(s.Region, s.Hosts, s.DiskGiB)
			require.NoError(t, err)
			sums = append(sums, sizing.USD(perHour*life.Hours()))
		}
		assert.Regexp(t, regexp.QuoteMeta("| "+row+" | ")+`\**`+regexp.QuoteMeta(sums[0])+`\** \| `+regexp.QuoteMeta(sums[1])+` \|`, page)
	}
	cell("an hour", time.Hour)
	cell("a soak of an hour, with setup and cleanup (1.4 h)", 84*time.Minute)
	cell("hosts not destroyed, with the TTL of 3 hours", 3*time.Hour)
	cell("hosts not destroyed for 30 days, without a TTL", 30*24*time.Hour)
}
