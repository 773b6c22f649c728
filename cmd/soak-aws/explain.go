package main

import (
	"fmt"
	"strings"
)

// remedies are what to do about errors of AWS that a first run meets, by the code that AWS gives them.
var remedies = []struct{ code, remedy string }{
	{"InsufficientInstanceCapacity", "the zone has no host of that type left to give at the moment: `make aws-down`, then set zone (or another instance type) in terraform.tfvars, and `make aws-up`"},
	{"VcpuLimitExceeded", "the vCPU quota of the account is too small; request more under Service Quotas (EC2, L-1216C47A), which takes hours to days, or use fewer or smaller hosts"},
	{"InstanceLimitExceeded", "the host quota of the account is too small; request more under Service Quotas (EC2), or use fewer"},
	{"not eligible for Free Tier", "the account is on the Free plan: change it to the Paid plan, or set both instance types to c7i-flex.large in terraform.tfvars"},
	{"ConflictException", "another deployment of this account has the name: choose one with NAME=, or see bin/soak-aws sweep"},
	{"ParameterAlreadyExists", "another deployment of this account has the name: choose one with NAME=, or see bin/soak-aws sweep"},
	{"Unsupported:", "the zone does not offer that: set zone (or another instance type) in terraform.tfvars"},
	{"OptInRequired", "the account is not signed up for EC2 in this region: complete its sign-up, or enable the region under Account in the AWS console"},
	{"PendingVerification", "AWS still verifies the account for this region, which takes minutes to hours: it writes an e-mail when it is done"},
	{"UnauthorizedOperation", "these credentials may not do that: infra/terraform/deployer-policy.json is what they need"},
	{"AccessDenied", "these credentials may not do that: infra/terraform/deployer-policy.json is what they need. Where only budgets are refused, budget_usd = 0 makes none"},
	{"ExpiredToken", "the credentials have expired: log in again (aws sso login)"},
	{"AddressLimitExceeded", "the account has no public address left in this region: release one, or ask for more under Service Quotas"},
	{"VpcLimitExceeded", "the account has no VPC left in this region (5 by default): delete one, or take another region"},
}

// explain names the remedy for what terraform or AWS said; it is empty where there is none.
func explain(said string) string {
	for _, r := range remedies {
		if strings.Contains(said, r.code) {
			return fmt.Sprintf("%s: %s", strings.TrimSuffix(r.code, ":"), r.remedy)
		}
	}
	return ""
}
