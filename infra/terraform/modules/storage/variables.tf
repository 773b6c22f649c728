variable "name" {
  description = "Prefix of the bucket's name."
  type        = string
}

variable "retention_days" {
  description = "Days after which objects are deleted."
  type        = number
}

variable "stack_dir" {
  description = "Folder with the files of the stack's host."
  type        = string
}

variable "runner_dir" {
  description = "Folder with the files of the runners' hosts, or null."
  type        = string
}
