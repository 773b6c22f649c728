// Package check tests the Terraform code in the parent folder without an AWS account. It also boots the hosts, as
// containers. Most tests need the build tag aws: `make aws-test`.
package check
