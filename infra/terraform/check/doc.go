// Package check holds the tests of the Terraform code in this folder that need no
// account, and a real boot of the stack's host. Most need the build tag aws: `make aws-test`.
package check
