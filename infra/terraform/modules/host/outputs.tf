output "instances" {
  description = "The hosts by their display names."
  value       = zipmap(var.host_names, aws_instance.this[*].id)
}

output "private_ips" {
  description = "Private addresses of the hosts."
  value       = aws_instance.this[*].private_ip
}

output "public_ips" {
  description = "Public addresses of the hosts."
  value       = aws_instance.this[*].public_ip
}
