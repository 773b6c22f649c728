# The bucket for shards and reports, and for the files that hosts load.

resource "aws_s3_bucket" "this" {
  #checkov:skip=CKV2_AWS_62:no notification is needed, because soak polls the bucket
  #checkov:skip=CKV_AWS_18:exists for hours, and only one role and one operator have access
  #checkov:skip=CKV_AWS_145:shards are not secret, and SSE-S3 is free
  #checkov:skip=CKV_AWS_144:lost results can be measured again
  bucket_prefix = "${var.name}-"

  # While the bucket contains archives (docs/report.md#archive-a-run), `make aws-down` keeps it and destroys all other
  # resources. With ALL=1 it also deletes the bucket and its content.
  force_destroy = true
}

resource "aws_s3_bucket_public_access_block" "this" {
  bucket = aws_s3_bucket.this.id

  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_server_side_encryption_configuration" "this" {
  bucket = aws_s3_bucket.this.id

  rule {
    apply_server_side_encryption_by_default {
      sse_algorithm = "AES256"
    }
  }
}

resource "aws_s3_bucket_versioning" "this" {
  bucket = aws_s3_bucket.this.id

  versioning_configuration {
    status = "Enabled"
  }
}

resource "aws_s3_bucket_lifecycle_configuration" "this" {
  bucket = aws_s3_bucket_versioning.this.bucket

  rule {
    id     = "expire"
    status = "Enabled"

    filter {}

    expiration {
      days = var.retention_days
    }

    # Checkpoints overwrite each other every 30 s.
    noncurrent_version_expiration {
      noncurrent_days = 1
    }

    abort_incomplete_multipart_upload {
      days_after_initiation = 1
    }
  }
}

resource "aws_s3_bucket_policy" "this" {
  bucket = aws_s3_bucket_public_access_block.this.bucket

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "TLSOnly"
      Effect    = "Deny"
      Principal = "*"
      Action    = "s3:*"
      Resource  = [aws_s3_bucket.this.arn, "${aws_s3_bucket.this.arn}/*"]
      Condition = { Bool = { "aws:SecureTransport" = "false" } }
    }]
  })
}

# Hosts load their files from here, so they need no registry and no clone of the repository. Hosts check the SHA-256
# of each file.
locals {
  files = merge(
    { for name in fileset(var.stack_dir, "*") : "stack/${name}" => "${var.stack_dir}/${name}" },
    { for name in try(fileset(var.runner_dir, "*"), []) : "runner/${name}" => "${var.runner_dir}/${name}" },
  )
}

resource "aws_s3_object" "file" {
  for_each = local.files

  bucket      = aws_s3_bucket_policy.this.bucket
  key         = "images/${substr(filesha256(each.value), 0, 16)}/${basename(each.key)}"
  source      = each.value
  source_hash = filesha256(each.value)
}
