# The state is a file in this folder and is lost with this machine; `bin/soak-aws sweep` finds its resources. To keep
# the state in your own bucket, and to use it from several machines, uncomment this block, insert your bucket, and run
# `terraform -chdir=infra/terraform init -migrate-state`. The state of a NAME is in the same bucket, below env:/.
#
# terraform {
#   backend "s3" {
#     bucket       = "my-terraform-state"
#     key          = "sse-soak/terraform.tfstate"
#     region       = "us-east-1"
#     encrypt      = true
#     use_lockfile = true
#   }
# }
