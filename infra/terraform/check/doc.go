// Package check holds the tests of the Terraform code beside it: what can be said of it without an
// account, and a real boot of the stack's host. Most need the build tag aws: `make aws-test`.
package check
