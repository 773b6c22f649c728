output "schedule_group" {
  description = "Name of the group of schedules that end hosts."
  value       = aws_scheduler_schedule_group.this.name
}

output "terminator_arn" {
  description = "ARN of the role of these schedules. It is available after its policy."
  value       = aws_iam_role.terminator.arn
  depends_on  = [aws_iam_role_policy.terminator]
}

output "end_parameter" {
  description = "SecureString with a later end of the hosts, if there is one."
  value       = aws_ssm_parameter.end.name
}

output "end_parameter_arn" {
  description = "ARN of that parameter."
  value       = aws_ssm_parameter.end.arn
}

output "permissions_boundary_arn" {
  description = "Permissions boundary for the roles of hosts; null: none."
  value       = var.permissions_boundary_arn
}
