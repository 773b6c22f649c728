package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const ubuntuParameter = "/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id"

// checked runs `soak-aws check` with settings and a Docker whose registry gives the same answer for each image.
func checked(t *testing.T, f *fakeAWS, settings, registry string) (string, error) {
	t.Helper()
	f.parameters[ubuntuParameter], f.parameters["/sse-soak/end"] = "ami-1", pending
	bin := t.TempDir()
	terraform := "#!/bin/sh\nif test \"$1\" = console; then cat '" + bin + "/settings'; fi\n"
	for name, text := range map[string]string{"terraform": terraform, "settings": strconv.Quote(settings), "docker": "#!/bin/sh\n" + registry, "aws": "", "session-manager-plugin": ""} {
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755))
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	var err error
	said := printed(t, func() {
		err = (&deployment{dir: t.TempDir()}).inspect(context.Background(), "../../compose.yaml", filepath.Join(bin, "no-image"))
	})
	return said, err
}

// printed is what a function writes to standard output.
func printed(t *testing.T, do func()) string {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	stdout := os.Stdout
	os.Stdout = w
	do()
	os.Stdout = stdout
	require.NoError(t, w.Close())
	said, err := io.ReadAll(r)
	require.NoError(t, err)
	return string(said)
}

const (
	defaults = `{"name":"sse-soak","region":"us-east-1","zone":null,"stack_instance_type":"c5.large","runner_instance_type":"c5.large","runner_architecture":"amd64","runner_node_count":1,"budget_usd":20,"ttl_minutes":180,"stack_disk_gib":30,"runner_disk_gib":20}`
	hasAll   = `echo '{"manifests":[{"platform":{"os":"linux","architecture":"arm64"}},{"platform":{"os":"linux","architecture":"amd64"}}]}'`
)

func TestCheck(t *testing.T) {
	f := startAWS(t)
	f.account = newAccount()
	said, err := checked(t, f, defaults, hasAll)
	require.NoError(t, err, said)
	for _, row := range []string{
		`ok +credentials +arn:aws:sts::123456789012:assumed-role/dev/me in account 123456789012, region us-east-1`,
		`ok +price +\$0.19 an hour: 2 × c5.large with addresses and disks in us-east-1, on demand, by prices of \d{4}-\d\d-\d\d; \$0.56 until the hosts terminate themselves`,
		`ok +zones +c5.large offered in us-east-1a, us-east-1b`,
		`ok +vCPU quota +4 needed, 0 of 5 in use`,
		`ok +start c5.large +these credentials may`,
		`ok +budget +budgets may be seen`,
		`note +runners' image +is not built yet; .make aws-up. builds it for linux/amd64`,
		`ok +images of others +all 7 are there for linux/amd64, 0 of them pinned by digest`,
		`ok +way in +the AWS command line and its Session Manager plugin are here`,
		`ok +time to live +no host is there yet; each ends itself 3h0m0s after its start`,
	} {
		assert.Regexp(t, "(?m)^"+row, said)
	}
}

func TestWhatAnAccountLacks(t *testing.T) {
	f := startAWS(t)
	f.account = &fakeAccount{
		zones: map[string][]string{"c5.large": {"us-east-1a"}}, quota: 5, dryRun: "UnauthorizedOperation", budgets: "AccessDeniedException",
		running: `<item><instanceType>m5.large</instanceType><cpuOptions><coreCount>1</coreCount><threadsPerCore>2</threadsPerCore></cpuOptions></item>` +
			`<item><instanceType>p3.2xlarge</instanceType><cpuOptions><coreCount>4</coreCount><threadsPerCore>2</threadsPerCore></cpuOptions></item>` +
			`<item><instanceType>c5.large</instanceType><cpuOptions><coreCount>1</coreCount><threadsPerCore>2</threadsPerCore></cpuOptions><tagSet><item><key>Run</key><value>sse-soak</value></item></tagSet></item>`,
	}
	settings := `{"name":"sse-soak","region":"us-east-1","zone":"us-east-1e","stack_instance_type":"c5.large","runner_instance_type":"c5.large","runner_architecture":"amd64","runner_node_count":1,"budget_usd":20,"ttl_minutes":180}`
	said, err := checked(t, f, settings, "echo 'no such manifest: x' >&2; exit 1")
	require.ErrorContains(t, err, "5 of 10 checks failed; nothing was made")
	for _, row := range []string{
		`FAIL +zones +us-east-1e does not offer c5.large; these do: us-east-1a`,
		`FAIL +vCPU quota +4 are needed, and 2 of 5 are in use`,
		`FAIL +start c5.large +.*UnauthorizedOperation.*these credentials may not do that`,
		`FAIL +budget +these credentials may not see budgets: .*budget_usd = 0`,
		`FAIL +images of others +ghcr.io/google/cadvisor:.*: the registry has none for linux/amd64`,
	} {
		assert.Regexp(t, "(?m)^"+row, said)
	}
}

// What cannot be asked is no reason to stop: it may work all the same.
func TestWhatCannotBeAsked(t *testing.T) {
	f := startAWS(t)
	f.account = newAccount()
	f.account.dryRun = "VPCIdNotSpecified"
	f.hosts, f.launched = []string{"i-1", "i-2"}, time.Now().Add(-time.Hour)
	said, err := checked(t, f, defaults, "echo 'toomanyrequests: You have reached your pull rate limit' >&2; exit 1")
	require.NoError(t, err, said)
	assert.Regexp(t, `note +start c5.large +could not be tried, since the account has no default VPC`, said)
	assert.Regexp(t, `note +images of others +7 of 7 could not be asked for: .*the registry's rate limit for this machine is reached`, said)
	assert.Regexp(t, `ok +time to live +2 hosts are there and end at .*, in 2h0m0s`, said)
}

func TestTypesThatCountForTheStandardQuota(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]bool{"c5.large": true, "im4gn.large": true, "t3.micro": true, "p3.2xlarge": false, "inf1.xlarge": false, "g4dn.xlarge": false, "x1.16xlarge": false} {
		assert.Equal(t, want, isStandard(kind), kind)
	}
}

// What stands in terraform.tfvars wins over NAME: the tag, and what `aws-down` looks for, would be another deployment's.
func TestNameThatTheSettingsContradict(t *testing.T) {
	f := startAWS(t)
	f.account = newAccount()
	d := deployed(t)
	_, err := checked(t, f, defaults, hasAll)
	require.NoError(t, err)
	d.name = "second"
	_, err = d.settings(context.Background())
	require.ErrorContains(t, err, `terraform.tfvars says name = "sse-soak", which wins over NAME=second: delete that line`)
}
