variable "name" {
  description = "Prefix of the bucket's name."
  type        = string
}

variable "retention_days" {
  description = "Days after which objects are deleted."
  type        = number
}

variable "stack_archive_file" {
  description = "What the stack's host is made from (soak-aws pack)."
  type        = string
}

variable "runner_image_file" {
  description = "The runners' image (docker save, gzip), or null."
  type        = string
}
