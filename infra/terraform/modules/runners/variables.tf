variable "name" {
  description = "Prefix of names."
  type        = string
}

variable "region" {
  description = "AWS region."
  type        = string
}

variable "network" {
  description = "Where the hosts stand."
  type = object({
    vpc_id    = string
    subnet_id = string
  })
}

variable "guard" {
  description = "What ends the hosts from outside."
  type = object({
    schedule_group    = string
    terminator_arn    = string
    end_parameter     = string
    end_parameter_arn = string
  })
}

variable "operator_cidrs" {
  description = "Who may reach the Kubernetes API."
  type        = list(string)
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
  description = "Seconds after which the security group forgets an idle connection; null: what the instance type has."
  type        = number
}

variable "ttl_minutes" {
  description = "Minutes after which each host ends itself."
  type        = number
}

variable "node_count" {
  description = "Hosts: one k3s server, and agents for the rest."
  type        = number
}

variable "stack_security_group_id" {
  description = "Security group of the stack, which lets the runners in."
  type        = string
}

variable "bucket" {
  description = "Bucket for shards, and where the runners' image is."
  type        = string
}

variable "bucket_arn" {
  description = "ARN of the bucket."
  type        = string
}

variable "image" {
  description = "The runners' image: its key in the bucket, and its SHA-256."
  type = object({
    key    = string
    sha256 = string
  })
}
