provider "aws" {
  region = var.region

  # Run is what budget, cleaning up and cost allocation go by.
  default_tags {
    tags = {
      Project   = "sse-soak"
      Run       = var.name
      ManagedBy = "terraform"
    }
  }
}
