variable "name" {
  description = "Prefix of names."
  type        = string
}

variable "region" {
  description = "AWS region."
  type        = string
}

variable "network" {
  description = "Network of the hosts."
  type = object({
    vpc_id    = string
    subnet_id = string
    public    = bool
  })
}

variable "guard" {
  description = "Termination of the hosts from outside."
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
  description = "Architecture of the instance type and of the image: amd64 or arm64."
  type        = string
}

variable "disk_gib" {
  description = "GiB of each disk."
  type        = number
}

variable "connection_tracking_timeout_seconds" {
  description = "Seconds after which the security group forgets an idle connection; null: default of the instance type."
  type        = number
}

variable "ttl_minutes" {
  description = "Minutes after which each host terminates itself."
  type        = number
}

variable "node_count" {
  description = "Hosts: one k3s server, and agents for the rest."
  type        = number
}

variable "stack_security_group_id" {
  description = "Security group of the stack. It allows connections from the runners."
  type        = string
}

variable "bucket" {
  description = "Bucket for shards and for the files of the hosts."
  type        = string
}

variable "bucket_arn" {
  description = "ARN of the bucket."
  type        = string
}

variable "files" {
  description = "Files of the hosts in the bucket: SHA-256 by key."
  type        = map(string)
}
