package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// failingDeployment returns a deployment whose terraform prints a text and fails.
func failingDeployment(t *testing.T, output string) *deployment {
	t.Helper()
	addPrograms(t, map[string]string{"terraform": "#!/bin/sh\ncat \"${0%/*}/output\" >&2\nexit 1\n", "output": output})
	return &deployment{dir: t.TempDir()}
}

func TestRemedies(t *testing.T) {
	for output, remedy := range map[string]string{
		"Error: creating EC2 Instance: operation error EC2: RunInstances, https response error StatusCode: 500, RequestID: 1, api error InsufficientInstanceCapacity: We currently do not have sufficient c5.large capacity in the Availability Zone you requested (us-east-1e).": "set zone (or another instance type)",
		"api error InvalidParameterCombination: The specified instance type is not eligible for Free Tier":                                                                                     "change it to the Paid plan",
		"api error ConflictException: Schedule group sse-soak already exists":                                                                                                                  "choose another name with NAME=",
		"api error VcpuLimitExceeded: You have requested more vCPU capacity than your current vCPU limit of 1 allows":                                                                          "Service Quotas (EC2, L-1216C47A)",
		"Error: creating Budget: operation error Budgets: CreateBudget, api error AccessDeniedException: User is not authorized to perform: budgets:ModifyBudget":                              "set budget_usd = 0",
		"api error Unsupported: Your requested instance type (c5.large) is not supported in your requested Availability Zone (us-east-1e). Please retry your request by not specifying a zone": "the zone does not offer this instance type",
	} {
		require.ErrorContains(t, failingDeployment(t, output).change(context.Background(), "apply"), remedy)
	}
	require.EqualError(t, failingDeployment(t, "Error: Invalid value for variable").change(context.Background(), "apply"), "terraform apply: exit status 1")
}

func TestMissingFolder(t *testing.T) {
	d := failingDeployment(t, "")
	d.dir = "elsewhere"
	require.ErrorContains(t, d.change(context.Background(), "apply"), "elsewhere: no such file or directory; run soak-aws in the folder of the repository")
}
