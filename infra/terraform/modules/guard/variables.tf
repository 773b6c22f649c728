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
  description = "Who is written to."
  type        = list(string)
}

variable "permissions_boundary_arn" {
  description = "Permissions boundary of the roles, this one's and the hosts'; null: none."
  type        = string
  default     = null
}
