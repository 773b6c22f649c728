output "schedule_group" {
  description = "Name of the group of schedules that end hosts."
  value       = aws_scheduler_schedule_group.this.name
}

output "terminator_arn" {
  description = "ARN of the role that those schedules act in. It is given out with its policy in place."
  value       = aws_iam_role.terminator.arn
  depends_on  = [aws_iam_role_policy.terminator]
}

output "end_parameter" {
  description = "SecureString with a later end of the hosts, once there is one."
  value       = aws_ssm_parameter.end.name
}

output "end_parameter_arn" {
  description = "Its ARN."
  value       = aws_ssm_parameter.end.arn
}

output "permissions_boundary_arn" {
  description = "Permissions boundary for the roles of hosts; null: none."
  value       = var.permissions_boundary_arn
}
