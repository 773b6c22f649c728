# The state is a file here, and is lost with this machine; `bin/soak-aws sweep` finds what it knew. To keep it in a bucket of
# yours, and to work on it from several machines: uncomment this, put your bucket in, and
# `terraform -chdir=infra/terraform init -migrate-state`. The state of a NAME is beside it, below env:/.
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
