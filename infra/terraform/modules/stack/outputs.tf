output "security_group_id" {
  description = "Security group of the stack, to which the runners' module adds its own."
  value       = aws_security_group.this.id
}

output "instance_id" {
  description = "The host."
  value       = one(values(module.host.instances))
}

output "private_ip" {
  description = "Its private address."
  value       = one(module.host.private_ips)
}

output "public_ip" {
  description = "Its public address."
  value       = one(module.host.public_ips)
}

output "secrets_parameter" {
  description = "SecureString with token and passwords, as lines of .env."
  value       = aws_ssm_parameter.secrets.name
}

output "status_parameter" {
  description = "Parameter that says how far the setup is."
  value       = aws_ssm_parameter.status.name
}
