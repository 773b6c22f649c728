// Package check tests the Terraform code in the parent folder without an AWS account. It also boots the hosts, as
// containers. Most tests need the build tag aws: `make aws-test`.
package check

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const policyFile = "../deployer-policy.json"

// A stringList is a JSON string or a list of strings. IAM accepts both.
type stringList []string

func (l *stringList) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*l = stringList{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(l))
}

type policy struct {
	Version   string
	Statement []struct {
		Sid, Effect      string
		Action, Resource stringList
		Condition        map[string]map[string]stringList
	}
}

func deployerPolicy(t *testing.T) (p policy, text []byte) {
	t.Helper()
	text, err := os.ReadFile(policyFile)
	require.NoError(t, err)
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&p))
	return p, text
}

// resourceRights lists the IAM actions that the Terraform provider needs to create, read, change and delete each kind
// of resource in modules/. The linter parliament 1.6 checked the names of the actions against the service authorization
// reference of AWS.
var resourceRights = map[string]string{
	"aws_budgets_budget":                    "budgets:ModifyBudget budgets:ViewBudget budgets:TagResource budgets:UntagResource budgets:ListTagsForResource",
	"aws_default_security_group":            "ec2:DescribeSecurityGroups ec2:RevokeSecurityGroupIngress ec2:RevokeSecurityGroupEgress ec2:CreateTags ec2:DeleteTags",
	"aws_iam_instance_profile":              "iam:CreateInstanceProfile iam:GetInstanceProfile iam:DeleteInstanceProfile iam:TagInstanceProfile iam:UntagInstanceProfile iam:AddRoleToInstanceProfile iam:RemoveRoleFromInstanceProfile iam:PassRole",
	"aws_iam_role":                          "iam:CreateRole iam:GetRole iam:UpdateRole iam:UpdateRoleDescription iam:UpdateAssumeRolePolicy iam:DeleteRole iam:TagRole iam:UntagRole iam:ListRolePolicies iam:ListAttachedRolePolicies iam:ListInstanceProfilesForRole",
	"aws_iam_role_policy":                   "iam:PutRolePolicy iam:GetRolePolicy iam:DeleteRolePolicy",
	"aws_instance":                          "ec2:RunInstances ec2:TerminateInstances ec2:StartInstances ec2:StopInstances ec2:ModifyInstanceAttribute ec2:ModifyInstanceMetadataOptions ec2:ModifyVolume ec2:CreateTags ec2:DescribeInstances ec2:DescribeInstanceAttribute ec2:DescribeInstanceTypes ec2:DescribeInstanceCreditSpecifications ec2:DescribeVolumes ec2:DescribeTags iam:PassRole",
	"aws_internet_gateway":                  "ec2:CreateInternetGateway ec2:AttachInternetGateway ec2:DetachInternetGateway ec2:DeleteInternetGateway ec2:DescribeInternetGateways",
	"aws_launch_template":                   "ec2:CreateLaunchTemplate ec2:CreateLaunchTemplateVersion ec2:ModifyLaunchTemplate ec2:DeleteLaunchTemplate ec2:DescribeLaunchTemplates ec2:DescribeLaunchTemplateVersions",
	"aws_route_table":                       "ec2:CreateRouteTable ec2:DeleteRouteTable ec2:CreateRoute ec2:ReplaceRoute ec2:DeleteRoute ec2:DescribeRouteTables",
	"aws_route_table_association":           "ec2:AssociateRouteTable ec2:DisassociateRouteTable",
	"aws_s3_bucket":                         "s3:CreateBucket s3:DeleteBucket s3:ListBucket s3:ListBucketVersions s3:DeleteObject s3:DeleteObjectVersion s3:PutBucketTagging s3:TagResource s3:UntagResource s3:ListTagsForResource s3:GetBucketTagging s3:GetBucketAcl s3:GetBucketCORS s3:GetBucketWebsite s3:GetBucketVersioning s3:GetBucketLogging s3:GetBucketRequestPayment s3:GetBucketPolicy s3:GetBucketObjectLockConfiguration s3:GetBucketLocation s3:GetAccelerateConfiguration s3:GetEncryptionConfiguration s3:GetLifecycleConfiguration s3:GetReplicationConfiguration",
	"aws_s3_bucket_policy":                  "s3:PutBucketPolicy s3:GetBucketPolicy s3:DeleteBucketPolicy",
	"aws_s3_bucket_versioning":              "s3:PutBucketVersioning s3:GetBucketVersioning",
	"aws_s3_object":                         "s3:PutObject s3:PutObjectTagging s3:GetObject s3:GetObjectTagging s3:DeleteObject s3:DeleteObjectVersion s3:AbortMultipartUpload",
	"aws_scheduler_schedule":                "scheduler:CreateSchedule scheduler:GetSchedule scheduler:UpdateSchedule scheduler:DeleteSchedule iam:PassRole",
	"aws_scheduler_schedule_group":          "scheduler:CreateScheduleGroup scheduler:GetScheduleGroup scheduler:DeleteScheduleGroup scheduler:TagResource scheduler:UntagResource scheduler:ListTagsForResource",
	"aws_security_group":                    "ec2:CreateSecurityGroup ec2:DeleteSecurityGroup ec2:RevokeSecurityGroupEgress ec2:DescribeSecurityGroups ec2:DescribeNetworkInterfaces ec2:CreateTags ec2:DeleteTags",
	"aws_ssm_parameter":                     "ssm:PutParameter ssm:GetParameter ssm:GetParameters ssm:DescribeParameters ssm:DeleteParameter ssm:AddTagsToResource ssm:RemoveTagsFromResource ssm:ListTagsForResource",
	"aws_subnet":                            "ec2:CreateSubnet ec2:DeleteSubnet ec2:DescribeSubnets ec2:DescribeNetworkInterfaces",
	"aws_vpc":                               "ec2:CreateVpc ec2:DeleteVpc ec2:ModifyVpcAttribute ec2:DescribeVpcs ec2:DescribeVpcAttribute ec2:DescribeNetworkAcls ec2:DescribeRouteTables ec2:DescribeSecurityGroups",
	"aws_vpc_endpoint":                      "ec2:CreateVpcEndpoint ec2:ModifyVpcEndpoint ec2:DeleteVpcEndpoints ec2:DescribeVpcEndpoints ec2:DescribePrefixLists",
	"terraform_data":                        "",
	"data aws_availability_zones":           "ec2:DescribeAvailabilityZones",
	"data aws_caller_identity":              "", // no permission is needed
	"data aws_default_tags":                 "",
	"data aws_partition":                    "",
	"data aws_subnet":                       "ec2:DescribeSubnets",
	"data aws_ssm_parameter":                "ssm:GetParameter",
	"aws_s3_bucket_lifecycle_configuration": "s3:PutLifecycleConfiguration s3:GetLifecycleConfiguration",
	"aws_s3_bucket_public_access_block":     "s3:PutBucketPublicAccessBlock s3:GetBucketPublicAccessBlock",
	"aws_s3_bucket_server_side_encryption_configuration": "s3:PutEncryptionConfiguration s3:GetEncryptionConfiguration",
	"aws_vpc_security_group_egress_rule":                 "ec2:AuthorizeSecurityGroupEgress ec2:RevokeSecurityGroupEgress ec2:ModifySecurityGroupRules ec2:DescribeSecurityGroupRules ec2:CreateTags",
	"aws_vpc_security_group_ingress_rule":                "ec2:AuthorizeSecurityGroupIngress ec2:RevokeSecurityGroupIngress ec2:ModifySecurityGroupRules ec2:DescribeSecurityGroupRules ec2:CreateTags",
	"data aws_ec2_instance_type_offerings":               "ec2:DescribeInstanceTypeOfferings",
}

// callRights maps commands of the AWS CLI to their IAM actions. It omits commands whose action is SERVICE:Operation.
var callRights = map[string]string{
	"sts get-caller-identity": "", "configure export-credentials": "", "service-quotas get-service-quota": "servicequotas:GetServiceQuota",
	"resourcegroupstaggingapi get-resources": "tag:GetResources", "s3api list-objects-v2": "s3:ListBucket", "s3api head-bucket": "s3:ListBucket",
	"ssm start-session": "ssm:StartSession ssm:TerminateSession ssm:ResumeSession ssmmessages:OpenDataChannel",
}

// requestedActions returns the actions that the source code of soak-aws needs, each with its command.
func requestedActions(t *testing.T) map[string]string {
	t.Helper()
	needed := map[string]string{}
	files, err := filepath.Glob("../../../cmd/soak-aws/*.go")
	require.NoError(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`"(configure|sts|ec2|iam|ssm|s3api|scheduler|service-quotas|resourcegroupstaggingapi)", "([a-z][a-z0-9-]+)"`).FindAllStringSubmatch(string(text), -1) {
			command := m[1] + " " + m[2]
			rights, known := callRights[command]
			if !known {
				operation := ""
				for word := range strings.SplitSeq(m[2], "-") {
					operation += strings.ToUpper(word[:1]) + word[1:]
				}
				rights = m[1] + ":" + operation
			}
			for right := range strings.FieldsSeq(rights) {
				needed[right] = filepath.Base(file) + " runs aws " + command
			}
		}
	}
	return needed
}

// createdActions returns the actions that Terraform's code needs to create and look up resources, each with the kind
// of resource.
func createdActions(t *testing.T) map[string]string {
	t.Helper()
	needed := map[string]string{}
	files, err := filepath.Glob("../modules/*/*.tf")
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`(?m)^(resource|data) "([a-z0-9_]+)"`).FindAllStringSubmatch(string(text), -1) {
			kind := strings.TrimPrefix(m[1]+" "+m[2], "resource ")
			rights, known := resourceRights[kind]
			require.True(t, known, "%s has the kind %s; add the actions that Terraform's provider needs for this kind to resourceRights and to %s", file, kind, policyFile)
			for right := range strings.FieldsSeq(rights) {
				needed[right] = kind
			}
		}
	}
	return needed
}

// readShards lists the permissions that `soak` itself needs on the bucket.
const readShards = "s3:GetObject s3:ListBucket"

// TestDeployerPolicy checks that the policy has exactly the rights to create, use and destroy the deployment.
func TestDeployerPolicy(t *testing.T) {
	t.Parallel()
	p, text := deployerPolicy(t)
	needed := createdActions(t)
	maps.Copy(needed, requestedActions(t))
	for right := range strings.FieldsSeq(readShards) {
		needed[right] = "soak reads shards"
	}
	require.Greater(t, len(needed), 80)
	require.Contains(t, needed, "ec2:TerminateInstances")
	require.Contains(t, needed, "scheduler:UpdateSchedule")

	grantedActions := map[string]bool{} // the allowed actions; true: needed
	for _, s := range p.Statement {
		for _, action := range s.Action {
			grantedActions[action] = false
		}
	}
	for _, right := range slices.Sorted(maps.Keys(needed)) {
		found := false
		for action := range grantedActions {
			if matches, err := path.Match(action, right); err == nil && matches {
				grantedActions[action], found = true, true
			}
		}
		assert.True(t, found, "the policy must allow %s, which %s needs", right, needed[right])
	}
	for action, isNeeded := range grantedActions {
		assert.True(t, isNeeded, "the policy allows %s, which is not needed", action)
	}
	assert.LessOrEqual(t, len(regexp.MustCompile(`\s`).ReplaceAll(text, nil)), 6144, "the policy must not exceed IAM's limit for a managed policy")
}

// TestDeployerPolicyIsNarrow checks that actions apply only to resources with the tag or the name of this project,
// except the actions that onEverything matches.
func TestDeployerPolicyIsNarrow(t *testing.T) {
	t.Parallel()
	p, _ := deployerPolicy(t)
	assert.Equal(t, "2012-10-17", p.Version)
	names := map[string]bool{}
	onEverything := regexp.MustCompile(`^(ec2:(Describe\*|Create[A-Z][A-Za-z]+|RunInstances|ModifySecurityGroupRules|(Authorize|Revoke)SecurityGroup(In|E)gress)|[a-z]+:(List|Describe|View|Get)[A-Za-z]+|iam:SimulatePrincipalPolicy)$`)
	for _, s := range p.Statement {
		assert.Equal(t, "Allow", s.Effect, s.Sid)
		assert.False(t, names[s.Sid], "two statements have the Sid %s", s.Sid)
		names[s.Sid] = true
		for _, resource := range s.Resource {
			bound := strings.Contains(resource, "sse-soak") || strings.Contains(resource, "document/") || strings.Contains(resource, "${aws:userid}") || strings.Contains(resource, ":parameter/aws/service/")
			if bound || len(s.Condition) > 0 {
				continue
			}
			for _, action := range s.Action {
				assert.Regexp(t, onEverything, action, fmt.Sprintf("%s: the action applies to %s without a condition", s.Sid, resource))
			}
		}
	}
}

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
