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
  })
}

variable "guard" {
  description = "What ends the host from outside."
  type = object({
    schedule_group = string
    terminator_arn = string
  })
}

variable "operator_cidrs" {
  description = "Who may reach port 80, apart from the runners."
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

variable "repository_url" {
  description = "Where the repository is cloned from."
  type        = string
}

variable "repository_commit" {
  description = "Full id of the commit to run."
  type        = string
}

variable "connections" {
  description = "Streams to hold."
  type        = number
}

variable "noop_interval_seconds" {
  description = "Seconds between two noops of one stream."
  type        = number
}
