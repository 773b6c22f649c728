variable "name" {
  description = "Prefix of names."
  type        = string
}

variable "region" {
  description = "AWS region."
  type        = string
}

variable "zone" {
  description = "Availability zone; null: the first that offers the instance types."
  type        = string
  default     = null
}

variable "instance_types" {
  description = "Instance types that the zone must offer."
  type        = list(string)
}

variable "subnet_id" {
  description = "Existing subnet; null: create one with a VPC."
  type        = string
  default     = null
}
