package check

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// plannedResources returns the resources of the committed plan by address. TestPlan writes the plan.
func plannedResources(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../..", "docs/results/terraform-plan.txt"))
	require.NoError(t, err)
	all := map[string]string{}
	for part := range strings.SplitSeq(string(text), "\n  # ") {
		if address, body, ok := strings.Cut(part, " will be created\n"); ok {
			all[address] = body
		}
	}
	require.Greater(t, len(all), 40)
	return all
}

// value returns the value of an attribute in the plan of a resource.
func value(body, name string) string {
	found := regexp.MustCompile(`\+ ` + name + ` +=\s+"?([^"\s]+)`).FindStringSubmatch(body)
	if found == nil {
		return ""
	}
	return found[1]
}

// By default no port is open to the internet.
func TestHostsAreNotReachableFromTheInternet(t *testing.T) {
	t.Parallel()
	rules := 0
	for address, body := range plannedResources(t) {
		if !strings.Contains(address, "ingress_rule") || strings.Contains(address, "egress_rule") {
			continue
		}
		rules++
		assert.Empty(t, value(body, "cidr_ipv4"), address)
		assert.Contains(t, body, "+ referenced_security_group_id", address)
	}
	assert.Greater(t, rules, 3)
	reference := plannedResources(t)[`module.runners[0].aws_vpc_security_group_ingress_rule.between["reference"]`]
	assert.Equal(t, "7070 7070", value(reference, "from_port")+" "+value(reference, "to_port"))
}

// TestDescriptionsOfRules checks the characters of descriptions. EC2 rejects other characters, but a plan and
// `terraform validate` do not.
func TestDescriptionsOfRules(t *testing.T) {
	t.Parallel()
	described := 0
	for address, body := range plannedResources(t) {
		if !strings.Contains(address, ".aws_security_group.") && !strings.Contains(address, ".aws_vpc_security_group_") {
			continue
		}
		described++
		text := regexp.MustCompile(`\+ description +=\s+"(.*)"`).FindStringSubmatch(body)
		require.NotNil(t, text, address)
		assert.Regexp(t, `^[a-zA-Z0-9. _:/()#,@\[\]+=&;{}!$*-]{1,255}$`, text[1], address)
	}
	assert.Greater(t, described, 10)
}

// TestMetadataAccess checks that containers with their own network cannot reach the metadata of the stack's host. Pods
// on the runners' hosts can, because they write shards with the IAM role of their host.
func TestMetadataAccess(t *testing.T) {
	t.Parallel()
	hosts := 0
	for address, body := range plannedResources(t) {
		if !strings.Contains(address, ".aws_instance.") && !strings.Contains(address, ".aws_launch_template.") {
			continue
		}
		hosts++
		want := "1"
		if strings.HasPrefix(address, "module.runners") {
			want = "2"
		}
		assert.Equal(t, want, value(body, "http_put_response_hop_limit"), address)
		assert.Equal(t, "required", value(body, "http_tokens"), address)
	}
	assert.Equal(t, 4, hosts)
}
