# Access, and receivers of messages about costs.

variable "laptop_cidrs" {
  description = "IPv4 ranges from which laptops soak the stack at port 80 of its public address. That is plain HTTP: streams need no secret there; for Grafana and Prometheus use `bin/soak-aws open`. Empty: the port is closed."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for c in var.laptop_cidrs : can(cidrnetmask(c)) && try(tonumber(split("/", c)[1]) >= 16, false)])
    error_message = "laptop_cidrs holds something that is no IPv4 range, or one wider than /16: name the laptops' own addresses, such as 203.0.113.7/32."
  }
}

variable "alert_emails" {
  description = "Addresses that AWS Budgets writes to when the run costs more than planned. Empty only where budget_usd is 0."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for e in var.alert_emails : can(regex("^[^@ ]+@[^@ ]+[.][^@ ]+$", e))])
    error_message = "alert_emails holds something that is no e-mail address."
  }

  validation {
    condition     = length(var.alert_emails) > 0 || var.budget_usd == 0
    error_message = "alert_emails needs at least one e-mail address: copy terraform.tfvars.example to terraform.tfvars and set it there; budget_usd = 0 makes no budget."
  }
}

variable "alerts_topic_arn" {
  description = "ARN of an SNS topic of yours that the stack's alerts go to (docs/stack.md), without a key of its own. Empty: alerts are on the dashboards only."
  type        = string
  default     = ""

  validation {
    condition     = var.alerts_topic_arn == "" || can(regex("^arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]+$", var.alerts_topic_arn))
    error_message = "alerts_topic_arn is no ARN of an SNS topic such as arn:aws:sns:eu-central-1:123456789012:soak."
  }
}

# The deployment and its place.

variable "stack_dir" {
  description = "Folder with the files and images of the stack's host; `make aws-up` makes it."
  type        = string

  validation {
    condition     = try(contains(fileset(var.stack_dir, "*"), "files.tar.gz"), false)
    error_message = "stack_dir has to be the folder with files.tar.gz and the stack's images, which `make aws-up` makes and hands over."
  }
}

variable "region" {
  description = "AWS region, such as eu-central-1."
  type        = string
  default     = "us-east-1"

  validation {
    condition     = can(regex("^(us|eu|ap|ca|sa|af|me|il|mx)-[a-z]+-[0-9]$", var.region))
    error_message = "region has to be one of the commercial AWS regions, such as eu-central-1."
  }
}

variable "zone" {
  description = "Availability zone, such as eu-central-1b; null: the first that offers the instance types. For a zone that has no host left to give."
  type        = string
  default     = null

  validation {
    condition     = var.zone == null || try(startswith(var.zone, var.region) && can(regex("^[a-z]$", trimprefix(var.zone, var.region))), false)
    error_message = "zone has to be one of the region, such as eu-central-1b of eu-central-1."
  }
}

variable "name" {
  description = "Name of this deployment: the tag Run of all that it makes, and the prefix of names. Two names can stand side by side."
  type        = string
  default     = "sse-soak"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,22}[a-z0-9]$", var.name))
    error_message = "name has to be 3 to 24 lower-case letters, digits and dashes, because the bucket's name begins with it."
  }
}

variable "owner" {
  description = "Who made this deployment, as the tag Owner; `make aws-up` sets it to the caller's ARN."
  type        = string
  default     = ""
}

variable "tags" {
  description = "Further tags of all resources, such as those that an organization demands."
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
  description = "Existing subnet for all hosts, with a route to the internet (gateway or NAT); null: a VPC with a public subnet is made."
  type        = string
  default     = null

  validation {
    condition     = var.subnet_id == null || can(regex("^subnet-[0-9a-f]+$", var.subnet_id))
    error_message = "subnet_id must be the id of a subnet such as subnet-0123456789abcdef0."
  }
}

# The soak.

variable "connections" {
  description = "Streams that the stack is set up to hold."
  type        = number
  default     = 1200

  validation {
    condition     = var.connections >= 1 && var.connections <= 500000 && floor(var.connections) == var.connections
    error_message = "connections has to be a whole number from 1 to 500000: a process may hold 1048576 open files, and nginx needs two per stream."
  }
}

variable "noop_interval_seconds" {
  description = "Seconds between two noops of one stream."
  type        = number
  default     = 15

  validation {
    condition     = var.noop_interval_seconds >= 0.1 && var.noop_interval_seconds <= 3600
    error_message = "noop_interval_seconds has to be between 0.1 and 3600."
  }
}

# The hosts.

variable "stack_instance_type" {
  description = "Instance type of the stack's host; x86_64."
  type        = string
  default     = "c5.large"

  validation {
    condition     = can(regex("^[a-z]+[0-9]+[a-z-]*[.]([0-9]*x?large|medium|small|micro|metal[a-z0-9-]*)$", var.stack_instance_type)) && !can(regex("^[a-z]+[0-9]+g", var.stack_instance_type))
    error_message = "stack_instance_type has to be an x86_64 type such as c5.large; Graviton types (c7g) cannot run the images."
  }

  # Nitro v6 exists since the eighth generation. Types of this generation with an older Nitro are also
  # rejected: setting one variable costs less than a failed soak.
  validation {
    condition     = can(regex("^[a-z]+[1-7][a-z-]*[.]", var.stack_instance_type)) || var.connection_tracking_timeout_seconds != null
    error_message = "stack_instance_type is of a generation whose network cards (Nitro v6) forget idle connections after 350 s: set connection_tracking_timeout_seconds, for example to 86400."
  }
}

variable "runner_instance_type" {
  description = "Instance type of the runners' hosts: x86_64, or Graviton (c7g.large), whose image `make aws-up` builds for arm64."
  type        = string
  default     = "c5.large"

  validation {
    condition     = can(regex("^[a-z]+[0-9]+[a-z-]*[.]([0-9]*x?large|medium|small|micro|metal[a-z0-9-]*)$", var.runner_instance_type))
    error_message = "runner_instance_type has to be an instance type such as c5.large or c7g.large."
  }

  validation {
    condition     = can(regex("^[a-z]+[1-7][a-z-]*[.]", var.runner_instance_type)) || var.connection_tracking_timeout_seconds != null
    error_message = "runner_instance_type is of a generation whose network cards (Nitro v6) forget idle connections after 350 s: set connection_tracking_timeout_seconds, for example to 86400."
  }
}

variable "connection_tracking_timeout_seconds" {
  description = "Seconds after which security groups forget an idle established TCP connection. null: the default of the instance type, 5 days up to the seventh generation, 350 s on Nitro v6."
  type        = number
  default     = null

  validation {
    condition     = var.connection_tracking_timeout_seconds == null || try(var.connection_tracking_timeout_seconds >= 60 && var.connection_tracking_timeout_seconds <= 432000, false)
    error_message = "connection_tracking_timeout_seconds has to be from 60 to 432000, which is what EC2 takes."
  }
}

variable "runner_node_count" {
  description = "Hosts for the runners: a k3s server, which runs pods too, and agents for the rest. `bin/soak plan` says how many. 0: none, the load comes from elsewhere."
  type        = number
  default     = 1

  validation {
    condition     = var.runner_node_count >= 0 && var.runner_node_count <= 50 && floor(var.runner_node_count) == var.runner_node_count
    error_message = "runner_node_count has to be a whole number from 0 to 50."
  }
}

variable "runner_dir" {
  description = "Folder with the files of the runners' hosts (k3s, its images, the k6-operator, the runners' image); `make aws-up` makes it. Needed where there are runners."
  type        = string
  default     = null

  validation {
    condition     = var.runner_node_count == 0 || try(contains(fileset(var.runner_dir, "*"), "k3s"), false)
    error_message = "runner_dir has to be the folder with k3s and the images, which `make aws-up` makes and hands over; or set runner_node_count to 0."
  }
}

variable "stack_disk_gib" {
  description = "GiB of the stack's disk: images, and what Prometheus stores."
  type        = number
  default     = 30

  validation {
    condition     = var.stack_disk_gib >= 16 && var.stack_disk_gib <= 1000
    error_message = "stack_disk_gib has to be from 16 (the images need 8) to 1000."
  }
}

variable "runner_disk_gib" {
  description = "GiB of the disk of each runners' host."
  type        = number
  default     = 20

  validation {
    condition     = var.runner_disk_gib >= 12 && var.runner_disk_gib <= 1000
    error_message = "runner_disk_gib has to be from 12 to 1000."
  }
}

# Limits of time and costs.

variable "ttl_minutes" {
  description = "Minutes after which every host ends itself, whatever it is doing. Setting up takes some of them."
  type        = number
  default     = 180

  validation {
    condition     = var.ttl_minutes >= 30 && var.ttl_minutes <= 1440 && floor(var.ttl_minutes) == var.ttl_minutes
    error_message = "ttl_minutes has to be a whole number from 30 to 1440 (a day): a longer soak is a decision to take with the price in view."
  }
}

variable "budget_usd" {
  description = "US dollars a month above which AWS Budgets writes to alert_emails; also at half of it, and when the forecast is above. 0: no budget, where you may not make one or the account has its own."
  type        = number
  default     = 20

  validation {
    condition     = var.budget_usd == 0 || var.budget_usd >= 1
    error_message = "budget_usd has to be at least 1, or 0 for no budget."
  }
}

variable "retention_days" {
  description = "Days after which shards and archives in the bucket are deleted; with archives in it, the bucket outlives the hosts."
  type        = number
  default     = 30

  validation {
    condition     = var.retention_days >= 1 && var.retention_days <= 365 && floor(var.retention_days) == var.retention_days
    error_message = "retention_days has to be a whole number from 1 to 365."
  }
}
