variable "name" {
  description = "Prefix of names."
  type        = string
}

variable "region" {
  description = "AWS region."
  type        = string
}

variable "network" {
  description = "Where the host stands."
  type = object({
    vpc_id    = string
    subnet_id = string
    public    = bool
  })
}

variable "guard" {
  description = "What ends the host from outside."
  type = object({
    schedule_group    = string
    terminator_arn    = string
    end_parameter     = string
    end_parameter_arn = string

    permissions_boundary_arn = optional(string)
  })
}

variable "laptop_cidrs" {
  description = "From where port 80 is reached, apart from the runners; empty: from nowhere."
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
  description = "Seconds after which the security group forgets an idle connection; null: what the instance type has."
  type        = number
}

variable "ttl_minutes" {
  description = "Minutes after which the host ends itself."
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
  description = "Streams to hold."
  type        = number
}

variable "noop_interval_seconds" {
  description = "Seconds between two noops of one stream."
  type        = number
}

variable "alerts_topic_arn" {
  description = "SNS topic that alerts go to, empty for none."
  type        = string
}
