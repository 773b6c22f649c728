output "security_group_id" {
  description = "Security group of the stack, to which the module of the runners adds rules."
  value       = aws_security_group.this.id
}

output "instance_id" {
  description = "The host."
  value       = one(values(module.host.instances))
}

output "private_ip" {
  description = "Private address of the host."
  value       = one(module.host.private_ips)
}

output "public_ip" {
  description = "Public address of the host."
  value       = one(module.host.public_ips)
}

output "secrets_parameter" {
  description = "SecureString with token and passwords, as lines of .env."
  value       = aws_ssm_parameter.secrets.name
}

output "status_parameter" {
  description = "Parameter with the state of the setup."
  value       = aws_ssm_parameter.status.name
}
