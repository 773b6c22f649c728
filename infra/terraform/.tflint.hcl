# Only the rules for the language. The rules for AWS would need a download; instead, variables.tf and the
# provider validate enums.
plugin "terraform" {
  enabled = true
  preset  = "all"
}
