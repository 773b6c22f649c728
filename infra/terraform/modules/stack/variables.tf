variable "name" {
  description = "Prefix of names."
  type        = string
}

variable "region" {
  description = "AWS region."
  type        = string
}

variable "network" {
  description = "Network of the host."
  type = object({
    vpc_id    = string
    subnet_id = string
    public    = bool
  })
}

variable "guard" {
  description = "Termination of the host from outside."
  type = object({
    schedule_group    = string
    terminator_arn    = string
    end_parameter     = string
    end_parameter_arn = string

    permissions_boundary_arn = optional(string)
  })
}

variable "laptop_cidrs" {
  description = "IPv4 ranges that can reach port 80, in addition to the runners; empty: none."
  type        = list(string)
}

variable "instance_type" {
  description = "Instance type."
  type        = string
}

variable "disk_gib" {
  description = "GiB of the disk."
  type        = number
}

variable "connection_tracking_timeout_seconds" {
  description = "Seconds after which the security group forgets an idle connection; null: default of the instance type."
  type        = number
}

variable "ttl_minutes" {
  description = "Minutes after which the host terminates itself."
  type        = number
}

variable "bucket" {
  description = "Bucket with the files of the host."
  type        = string
}

variable "files" {
  description = "Files of the host in the bucket: SHA-256 by key."
  type        = map(string)
}

variable "connections" {
  description = "Number of streams."
  type        = number
}

variable "noop_interval_seconds" {
  description = "Seconds between two noops of one stream."
  type        = number
}

variable "alerts_topic_arn" {
  description = "SNS topic for alerts; empty: none."
  type        = string
}
