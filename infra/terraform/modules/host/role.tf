# Permissions of the host: open a session, read its own end and its files, and the statements of its module. AWS's
# policy AmazonSSMManagedInstanceCore is not used, because it lets a host read every parameter of the account.

data "aws_partition" "current" {}

resource "aws_iam_role" "this" {
  name_prefix          = "${var.name}-"
  permissions_boundary = var.guard.permissions_boundary_arn

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "ec2.amazonaws.com" }
    }]
  })
}

resource "aws_iam_role_policy" "this" {
  name_prefix = "host-"
  role        = aws_iam_role.this.id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = concat([{
      Effect = "Allow"
      Action = [
        "ssm:UpdateInstanceInformation",
        "ssmmessages:CreateControlChannel",
        "ssmmessages:CreateDataChannel",
        "ssmmessages:OpenControlChannel",
        "ssmmessages:OpenDataChannel",
      ]
      Resource = ["*"] # these actions do not support resources
      }, {
      Effect   = "Allow"
      Action   = ["ssm:GetParameter"]
      Resource = [var.guard.end_parameter_arn]
      }, {
      Effect   = "Allow"
      Action   = ["s3:GetObject"]
      Resource = [for key in keys(var.objects) : "arn:${data.aws_partition.current.partition}:s3:::${var.bucket}/${key}"]
    }], var.statements)
  })
}

# The profile is available after the policy of its role, because a host reads its parameters as soon as it runs.
resource "aws_iam_instance_profile" "this" {
  name_prefix = "${var.name}-"
  role        = aws_iam_role_policy.this.role
}
