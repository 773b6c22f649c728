output "instance_ids" {
  description = "The hosts."
  value       = aws_instance.this[*].id
}

output "names" {
  description = "Their names."
  value       = local.names
}

output "private_ips" {
  description = "Their private addresses."
  value       = aws_instance.this[*].private_ip
}

output "public_ips" {
  description = "Their public addresses."
  value       = aws_instance.this[*].public_ip
}
