# Access, and receivers of messages about costs.

variable "laptop_cidrs" {
  description = "IPv4 ranges of laptops that may connect to port 80 of the stack's public address. The port is plain HTTP and its streams need no secret; for Grafana and Prometheus, use `bin/soak-aws open`. Empty: the port is closed."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for c in var.laptop_cidrs : can(cidrnetmask(c)) && try(tonumber(split("/", c)[1]) >= 16, false)])
    error_message = "laptop_cidrs must contain only IPv4 ranges of at most /16; list the addresses of the laptops, such as 203.0.113.7/32."
  }
}

variable "alert_emails" {
  description = "Addresses to which AWS Budgets sends e-mails if the run costs more than planned. May be empty only if budget_usd is 0."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for e in var.alert_emails : can(regex("^[^@ ]+@[^@ ]+[.][^@ ]+$", e))])
    error_message = "alert_emails must contain only e-mail addresses."
  }

  validation {
    condition     = length(var.alert_emails) > 0 || var.budget_usd == 0
    error_message = "alert_emails must contain at least one e-mail address; copy terraform.tfvars.example to terraform.tfvars and set it there, or set budget_usd = 0 for no budget."
  }
}

variable "alerts_topic_arn" {
  description = "ARN of your SNS topic for the alerts of the stack (docs/stack.md). The topic must not use a customer managed key. Empty: alerts are on the dashboards only."
  type        = string
  default     = ""

  validation {
    condition     = var.alerts_topic_arn == "" || can(regex("^arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]+$", var.alerts_topic_arn))
    error_message = "alerts_topic_arn must be the ARN of an SNS topic such as arn:aws:sns:eu-central-1:123456789012:soak."
  }
}

# The deployment and its location.

variable "stack_dir" {
  description = "Folder with the files and images of the stack's host; `make aws-up` creates it."
  type        = string

  validation {
    condition     = try(contains(fileset(var.stack_dir, "*"), "files.tar.gz"), false)
    error_message = "stack_dir must be the folder with files.tar.gz and the images of the stack; run `make aws-up`, which creates and passes it."
  }
}

variable "region" {
  description = "AWS region, such as eu-central-1."
  type        = string
  default     = "us-east-1"

  validation {
    condition     = can(regex("^(us|eu|ap|ca|sa|af|me|il|mx)-[a-z]+-[0-9]$", var.region))
    error_message = "region must be a commercial AWS region such as eu-central-1."
  }
}

variable "zone" {
  description = "Availability zone, such as eu-central-1b; set it if the default zone has no capacity. null: the first zone that offers the instance types."
  type        = string
  default     = null

  validation {
    condition     = var.zone == null || try(startswith(var.zone, var.region) && can(regex("^[a-z]$", trimprefix(var.zone, var.region))), false)
    error_message = "zone must be a zone of the region, such as eu-central-1b of eu-central-1."
  }
}

variable "name" {
  description = "Name of this deployment: the value of the tag Run, and the prefix of all names. Deployments with different names can coexist."
  type        = string
  default     = "sse-soak"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,22}[a-z0-9]$", var.name))
    error_message = "name must have 3 to 24 lower-case letters, digits and dashes, because the name of the bucket starts with it."
  }
}

variable "owner" {
  description = "Creator of this deployment: the value of the tag Owner. `make aws-up` sets it to the ARN of the caller."
  type        = string
  default     = ""
}

variable "tags" {
  description = "Additional tags of all resources, such as those that an organization requires."
  type        = map(string)
  default     = {}

  validation {
    condition     = length(setintersection(keys(var.tags), ["Project", "Run", "ManagedBy", "Owner", "Name", "Host"])) == 0
    error_message = "tags must not contain Project, Run, ManagedBy, Owner, Name or Host, which this module sets."
  }
}

variable "permissions_boundary_arn" {
  description = "ARN of the permissions boundary of all roles; null: none."
  type        = string
  default     = null

  validation {
    condition     = var.permissions_boundary_arn == null || can(regex("^arn:aws[a-z-]*:iam::([0-9]{12}|aws):policy/", var.permissions_boundary_arn))
    error_message = "permissions_boundary_arn must be the ARN of a policy such as arn:aws:iam::123456789012:policy/boundary."
  }
}

variable "subnet_id" {
  description = "Existing subnet for all hosts, with a route to the internet (gateway or NAT); null: a VPC with a public subnet is created."
  type        = string
  default     = null

  validation {
    condition     = var.subnet_id == null || can(regex("^subnet-[0-9a-f]+$", var.subnet_id))
    error_message = "subnet_id must be the id of a subnet such as subnet-0123456789abcdef0."
  }
}

# The soak.

variable "connections" {
  description = "Number of streams that the stack is configured for."
  type        = number
  default     = 1200

  validation {
    condition     = var.connections >= 1 && var.connections <= 500000 && floor(var.connections) == var.connections
    error_message = "connections must be a whole number from 1 to 500000, because a process can have 1048576 open files and nginx needs two per stream."
  }
}

variable "noop_interval_seconds" {
  description = "Seconds between two noops of one stream."
  type        = number
  default     = 15

  validation {
    condition     = var.noop_interval_seconds >= 0.1 && var.noop_interval_seconds <= 3600
    error_message = "noop_interval_seconds must be between 0.1 and 3600."
  }
}

# The hosts.

variable "stack_instance_type" {
  description = "Instance type of the stack's host (x86_64)."
  type        = string
  default     = "c5.large"

  validation {
    condition     = can(regex("^[a-z]+[0-9]+[a-z-]*[.]([0-9]*x?large|medium|small|micro|metal[a-z0-9-]*)$", var.stack_instance_type)) && !can(regex("^[a-z]+[0-9]+g", var.stack_instance_type))
    error_message = "stack_instance_type must be an x86_64 type such as c5.large, because Graviton types (c7g) cannot run the images."
  }

  # The eighth generation introduced Nitro v6. Types of this generation with an older Nitro are also
  # rejected: setting one variable costs less than a failed run.
  validation {
    condition     = can(regex("^[a-z]+[1-7][a-z-]*[.]", var.stack_instance_type)) || var.connection_tracking_timeout_seconds != null
    error_message = "stack_instance_type belongs to a generation whose network cards (Nitro v6) forget idle connections after 350 s; set connection_tracking_timeout_seconds, for example to 86400."
  }
}

variable "runner_instance_type" {
  description = "Instance type of the runners' hosts: x86_64, or Graviton (c7g.large), whose image `make aws-up` builds for arm64."
  type        = string
  default     = "c5.large"

  validation {
    condition     = can(regex("^[a-z]+[0-9]+[a-z-]*[.]([0-9]*x?large|medium|small|micro|metal[a-z0-9-]*)$", var.runner_instance_type))
    error_message = "runner_instance_type must be an instance type such as c5.large or c7g.large."
  }

  validation {
    condition     = can(regex("^[a-z]+[1-7][a-z-]*[.]", var.runner_instance_type)) || var.connection_tracking_timeout_seconds != null
    error_message = "runner_instance_type belongs to a generation whose network cards (Nitro v6) forget idle connections after 350 s; set connection_tracking_timeout_seconds, for example to 86400."
  }
}

variable "connection_tracking_timeout_seconds" {
  description = "Seconds after which security groups forget an idle established TCP connection. null: the default of the instance type, 5 days up to the seventh generation, 350 s on Nitro v6."
  type        = number
  default     = null

  validation {
    condition     = var.connection_tracking_timeout_seconds == null || try(var.connection_tracking_timeout_seconds >= 60 && var.connection_tracking_timeout_seconds <= 432000, false)
    error_message = "connection_tracking_timeout_seconds must be from 60 to 432000, the range that EC2 accepts."
  }
}

variable "runner_node_count" {
  description = "Number of hosts for the runners: one k3s server, which also runs pods, and agents. `bin/soak plan` prints the number that a run needs. 0: no hosts, the load is generated elsewhere."
  type        = number
  default     = 1

  validation {
    condition     = var.runner_node_count >= 0 && var.runner_node_count <= 50 && floor(var.runner_node_count) == var.runner_node_count
    error_message = "runner_node_count must be a whole number from 0 to 50."
  }
}

variable "runner_dir" {
  description = "Folder with the files of the runners' hosts (k3s, its images, the k6-operator, the runners' image); `make aws-up` creates it. Required if runner_node_count is not 0."
  type        = string
  default     = null

  validation {
    condition     = var.runner_node_count == 0 || try(contains(fileset(var.runner_dir, "*"), "k3s"), false)
    error_message = "runner_dir must be the folder with k3s and the images; run `make aws-up`, which creates and passes it. To run without hosts for runners, set runner_node_count to 0."
  }
}

variable "stack_disk_gib" {
  description = "GiB of the stack's disk, for images and the data of Prometheus."
  type        = number
  default     = 30

  validation {
    condition     = var.stack_disk_gib >= 16 && var.stack_disk_gib <= 1000
    error_message = "stack_disk_gib must be from 16 (the images need 8) to 1000."
  }
}

variable "runner_disk_gib" {
  description = "GiB of the disk of each host for runners."
  type        = number
  default     = 20

  validation {
    condition     = var.runner_disk_gib >= 12 && var.runner_disk_gib <= 1000
    error_message = "runner_disk_gib must be from 12 to 1000."
  }
}

# Limits of time and costs.

variable "ttl_minutes" {
  description = "Minutes after which each host terminates itself, even during a run. They include the setup."
  type        = number
  default     = 180

  validation {
    condition     = var.ttl_minutes >= 30 && var.ttl_minutes <= 1440 && floor(var.ttl_minutes) == var.ttl_minutes
    error_message = "ttl_minutes must be a whole number from 30 to 1440 (one day); for a longer run, check its price and use `bin/soak-aws extend`."
  }
}

variable "budget_usd" {
  description = "US dollars a month above which AWS Budgets sends e-mails to alert_emails. It also sends them at half of this amount, and if the forecast exceeds it. 0: no budget, for example if you are not allowed to create one."
  type        = number
  default     = 20

  validation {
    condition     = var.budget_usd == 0 || var.budget_usd >= 1
    error_message = "budget_usd must be at least 1, or 0 for no budget."
  }
}

variable "retention_days" {
  description = "Days after which shards and archives in the bucket are deleted. `make aws-down` keeps the bucket while it contains archives."
  type        = number
  default     = 30

  validation {
    condition     = var.retention_days >= 1 && var.retention_days <= 365 && floor(var.retention_days) == var.retention_days
    error_message = "retention_days must be a whole number from 1 to 365."
  }
}
