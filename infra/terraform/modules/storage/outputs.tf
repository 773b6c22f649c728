output "bucket" {
  description = "Name of the bucket. It is given out with its policy in place."
  value       = aws_s3_bucket_policy.this.bucket
}

output "bucket_arn" {
  description = "ARN of the bucket."
  value       = aws_s3_bucket.this.arn
}

output "stack_archive" {
  description = "Where the stack's archive is: its key in the bucket, and its SHA-256."
  value = {
    key    = aws_s3_object.stack.key
    sha256 = aws_s3_object.stack.source_hash
  }
}

output "runner_image" {
  description = "Where the runners' image is: its key in the bucket, and its SHA-256. null without one."
  value = one([for o in aws_s3_object.runner_image : {
    key    = o.key
    sha256 = o.source_hash
  }])
}
