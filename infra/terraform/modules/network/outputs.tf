output "vpc_id" {
  description = "The VPC."
  value       = var.subnet_id == null ? aws_vpc.this[0].id : data.aws_subnet.existing[0].vpc_id
}

output "zone" {
  description = "The availability zone."
  value       = var.subnet_id == null ? aws_subnet.public[0].availability_zone : data.aws_subnet.existing[0].availability_zone
}

output "subnet_id" {
  description = "The subnet. A new subnet is available after its route, so that a host can reach the internet when it starts."
  value       = var.subnet_id == null ? aws_route_table_association.public[0].subnet_id : var.subnet_id
}

output "public" {
  description = "Whether hosts get public addresses. The settings of an existing subnet decide this."
  value       = var.subnet_id == null
}
