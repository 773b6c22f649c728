terraform {
  # 1.11 has write-only arguments, so that values that hosts store in parameters never enter the state.
  required_version = "~> 1.11"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 6.66"
    }
  }
}
