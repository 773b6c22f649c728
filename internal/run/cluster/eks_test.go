package cluster

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestEKSFitsItsOverlay checks that the EKS cluster of docs/distributed.md meets the requirements of the overlay aws.
func TestEKSFitsItsOverlay(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../infra/eks/cluster.yaml")
	require.NoError(t, err)
	var eks struct {
		Metadata struct{ Version string }
		VPC      struct {
			PublicAccessCIDRs []string
			ClusterEndpoints  struct{ PrivateAccess bool }
		}
		IAM struct {
			WithOIDC        bool
			ServiceAccounts []struct {
				Metadata     struct{ Name, Namespace string }
				RoleName     string
				AttachPolicy map[string]any
			}
		}
		ManagedNodeGroups []struct {
			Name   string
			Labels map[string]string
			Taints []struct{ Key, Effect string }
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &eks))
	assert.NotEmpty(t, eks.Metadata.Version)
	assert.Equal(t, []string{"ADDRESS/32"}, eks.VPC.PublicAccessCIDRs)
	assert.True(t, eks.VPC.ClusterEndpoints.PrivateAccess, "the nodes need private access, because PublicAccessCIDRs does not include them")
	require.True(t, eks.IAM.WithOIDC)
	require.Len(t, eks.IAM.ServiceAccounts, 1)
	role := eks.IAM.ServiceAccounts[0]

	m := buildOverlay(t, "aws")
	account := m.find("ServiceAccount", role.Metadata.Name)
	require.NotNil(t, account, "the overlay has no service account %v", role.Metadata)
	assert.Equal(t, role.Metadata.Namespace, account.GetNamespace())
	assert.True(t, strings.HasSuffix(account.GetAnnotations()["eks.amazonaws.com/role-arn"], ":role/"+role.RoleName), account.GetAnnotations())
	for _, part := range []string{"runner", "initializer"} {
		assert.Equal(t, role.Metadata.Name, field(t, m, "spec", part, "serviceAccountName"), part)
	}

	selector, _, err := unstructured.NestedStringMap(m.TestRun.Object, "spec", "runner", "nodeSelector")
	require.NoError(t, err)
	tolerations, err := json.Marshal(field(t, m, "spec", "runner", "tolerations"))
	require.NoError(t, err)
	var forRunners, forOthers bool
	for _, group := range eks.ManagedNodeGroups {
		if len(group.Taints) == 0 {
			forOthers = true // such as the operator
			continue
		}
		assert.Equal(t, selector, group.Labels, group.Name)
		assert.Contains(t, string(tolerations), `"key":"`+group.Taints[0].Key+`"`)
		forRunners = true
	}
	assert.True(t, forRunners && forOthers, "there must be nodes for runners and nodes for other pods")

	// The page has the policy too, for existing clusters.
	page, err := os.ReadFile("../../../docs/distributed.md")
	require.NoError(t, err)
	match := regexp.MustCompile(`(?s)\n +(\{"Version": "2012-10-17", "Statement": \[\{"Sid".*?\}\]\})\n`).FindSubmatch(page)
	require.NotNil(t, match)
	policy, err := json.Marshal(role.AttachPolicy)
	require.NoError(t, err)
	assert.JSONEq(t, string(policy), string(match[1]))
	assert.Contains(t, string(page), "system:serviceaccount:"+role.Metadata.Namespace+":"+role.Metadata.Name)
	assert.Contains(t, m.Output(), "/soak?", "runners must write below the prefix that the policy names")
}
