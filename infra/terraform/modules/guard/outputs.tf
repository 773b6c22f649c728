output "schedule_group" {
  description = "Name of the group of schedules that end hosts."
  value       = aws_scheduler_schedule_group.this.name
}

output "terminator_arn" {
  description = "ARN of the role that those schedules act in. It is given out with its policy in place."
  value       = aws_iam_role.terminator.arn
  depends_on  = [aws_iam_role_policy.terminator]
}
