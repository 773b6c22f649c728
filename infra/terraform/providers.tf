provider "aws" {
  region = var.region

  # Run is what budget, cleaning up and cost allocation go by.
  default_tags {
    tags = merge(var.tags, var.owner == "" ? {} : { Owner = var.owner }, {
      Project   = "sse-soak"
      Run       = var.name
      ManagedBy = "terraform"
    })
  }
}
