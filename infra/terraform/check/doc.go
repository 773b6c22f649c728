// Package check tests the Terraform code in this folder without an AWS account. It also boots the host of the stack. Most
// tests need the build tag aws: `make aws-test`.
package check
