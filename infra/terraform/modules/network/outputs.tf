output "vpc_id" {
  description = "The VPC."
  value       = aws_vpc.this.id
}

output "zone" {
  description = "The availability zone."
  value       = aws_subnet.public.availability_zone
}

output "subnet_id" {
  description = "The public subnet. It is given out with its route, so that a host can reach the internet when it starts."
  value       = aws_route_table_association.public.subnet_id
}
