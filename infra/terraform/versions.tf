terraform {
  # 1.11 has write-only arguments: what a host stores in a parameter never enters the state.
  required_version = "~> 1.11"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 6.66"
    }
  }
}
