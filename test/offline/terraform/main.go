// Command terraform is a stand-in for terraform-provider-aws. It serves the schema of version 6.66.0, so that
// terraform init, validate, plan, apply, destroy and test need no registry and no AWS account. It sends no requests.
// It invents the values that AWS would compute, and terraform stores them in the state file.
package main

import (
	"log"

	"github.com/hashicorp/terraform-plugin-go/tfprotov5"
	"github.com/hashicorp/terraform-plugin-go/tfprotov5/tf5server"
)

const address = "registry.terraform.io/hashicorp/aws"

func main() {
	s, err := newServer()
	if err != nil {
		log.Fatal(err)
	}
	if err := tf5server.Serve(address, func() tfprotov5.ProviderServer { return s }); err != nil {
		log.Fatal(err)
	}
}
