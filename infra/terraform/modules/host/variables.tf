variable "name" {
  description = "Name of the host; for several hosts, a number is added."
  type        = string
}

variable "host_count" {
  description = "Number of hosts of this kind."
  type        = number
  default     = 1
}

variable "host_names" {
  description = "Display names of the hosts in dashboards: the tag Host, by which the stack's Prometheus finds and names them."
  type        = list(string)
}

variable "region" {
  description = "AWS region of the host's requests."
  type        = string
}

variable "network" {
  description = "Subnet of the host, and whether it gets a public address there."
  type = object({
    subnet_id = string
    public    = bool
  })
}

variable "bucket" {
  description = "Bucket with the files of the host."
  type        = string
}

variable "objects" {
  description = "Files of the host in the bucket: SHA-256 by key."
  type        = map(string)
}

variable "security_group_id" {
  description = "Security group of the host."
  type        = string
}

variable "guard" {
  description = "Termination of the host from outside: the group of the schedules, their role, and the parameter for a later end."
  type = object({
    schedule_group    = string
    terminator_arn    = string
    end_parameter     = string
    end_parameter_arn = string

    permissions_boundary_arn = optional(string)
  })
}

variable "instance_type" {
  description = "Instance type."
  type        = string
}

variable "architecture" {
  description = "Architecture of the instance type: amd64 or arm64."
  type        = string
  default     = "amd64"
}

variable "disk_gib" {
  description = "GiB of the disk."
  type        = number
}

variable "connection_tracking_timeout_seconds" {
  description = "Seconds after which the security group forgets an idle connection; null: default of the instance type."
  type        = number
}

variable "metadata_hops" {
  description = "Maximum hops of responses of the metadata service: 1, or 2 if containers need the host's role."
  type        = number
  default     = 1

  validation {
    condition     = contains([1, 2], var.metadata_hops)
    error_message = "metadata_hops must be 1, or 2 if containers need the host's role."
  }
}

variable "ttl_minutes" {
  description = "Minutes after which the host terminates itself."
  type        = number
}

variable "statements" {
  description = "IAM statements of the host, in addition to the permissions of every host (role.tf)."
  type = list(object({
    Effect   = string
    Action   = list(string)
    Resource = list(string)
  }))
}

variable "status_parameters" {
  description = "Parameters in which hosts store the state of their setup, one per host."
  type        = list(string)
}

variable "script" {
  description = "Script that sets the host up. It starts by sourcing /opt/soak/begin.sh."
  type        = string
}

variable "files" {
  description = "Additional files for /opt/soak, by name."
  type        = map(string)
  default     = {}
}

variable "settings" {
  description = "Environment variables of the script."
  type        = map(string)

  validation {
    condition     = alltrue([for v in values(var.settings) : !strcontains(v, "'") && !strcontains(v, "\n")])
    error_message = "settings must not contain single quotes or line breaks, because they are quoted for the shell."
  }
}
