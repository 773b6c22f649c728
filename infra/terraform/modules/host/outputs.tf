output "instances" {
  description = "The hosts by what people call them."
  value       = zipmap(var.host_names, aws_instance.this[*].id)
}

output "private_ips" {
  description = "Their private addresses."
  value       = aws_instance.this[*].private_ip
}

output "public_ips" {
  description = "Their public addresses."
  value       = aws_instance.this[*].public_ip
}
