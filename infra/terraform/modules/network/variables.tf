variable "name" {
  description = "Prefix of names."
  type        = string
}

variable "region" {
  description = "AWS region."
  type        = string
}
