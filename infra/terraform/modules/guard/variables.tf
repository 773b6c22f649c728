variable "name" {
  description = "Prefix of names, and the value of the tag Run."
  type        = string
}

variable "region" {
  description = "AWS region."
  type        = string
}

variable "budget_usd" {
  description = "US dollars a month; 0: no budget."
  type        = number
}

variable "alert_emails" {
  description = "E-mail addresses of the receivers."
  type        = list(string)
}

variable "permissions_boundary_arn" {
  description = "Permissions boundary of the roles of schedules and hosts; null: none."
  type        = string
  default     = null
}
