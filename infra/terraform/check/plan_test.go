//go:build aws

package check

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite docs/results/terraform-plan.txt")

// TestPlan checks that the committed plan equals the current plan of terraform.
func TestPlan(t *testing.T) {
	t.Parallel()
	dir := initCopy(t)
	plan := terraform(t, dir, "plan", "-no-color", "-input=false",
		"-var", `alert_emails=["you@example.com"]`,
		"-var", "stack_dir=tests/files/stack", "-var", "runner_dir=tests/files/runner")
	plan = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d`).ReplaceAllString(plan, "2026-01-01T03:15:00") // the end of each schedule
	plan = regexp.MustCompile(`(?s)\n─+\n.*$`).ReplaceAllString(plan, "\n")                                   // the closing instructions
	_, plan, _ = strings.Cut(plan, "Terraform used the selected providers")                                   // the preceding lines list data sources in any order
	text := "# The output of `terraform plan` with the default settings and an address for alerts. `make aws-test` compares it\n" +
		"# with the current plan, without an AWS account: a stand-in for the AWS provider invents the values that AWS returns.\n\n" +
		"Terraform used the selected providers" + plan
	file := filepath.Join(root, "docs/results/terraform-plan.txt")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	committedPlan, err := os.ReadFile(file)
	require.NoError(t, err)
	require.True(t, string(committedPlan) == text, "docs/results/terraform-plan.txt differs from the plan of terraform; run go test -tags aws ./infra/terraform/check -run Plan -update")
}
