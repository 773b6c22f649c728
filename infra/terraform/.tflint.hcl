# The rules for the language; those for AWS come from a download that nobody has to trust: enums are
# validated in variables.tf and by the provider.
plugin "terraform" {
  enabled = true
  preset  = "all"
}
