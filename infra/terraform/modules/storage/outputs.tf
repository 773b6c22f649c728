output "bucket" {
  description = "Name of the bucket. It is available after its policy."
  value       = aws_s3_bucket_policy.this.bucket
}

output "bucket_arn" {
  description = "ARN of the bucket."
  value       = aws_s3_bucket.this.arn
}

output "stack_files" {
  description = "Files of the stack's host: SHA-256 by key in the bucket."
  value       = { for name, o in aws_s3_object.file : o.key => o.source_hash if startswith(name, "stack/") }
}

output "runner_files" {
  description = "Files of the runners' hosts: SHA-256 by key in the bucket."
  value       = { for name, o in aws_s3_object.file : o.key => o.source_hash if startswith(name, "runner/") }
}
