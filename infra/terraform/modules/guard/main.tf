# Limits the lifetime of hosts from outside: a group for the schedules that terminate them, the role of
# these schedules, and a budget.

data "aws_partition" "current" {}

data "aws_caller_identity" "current" {}

resource "aws_scheduler_schedule_group" "this" {
  name = var.name
}

# A later end of the hosts, which `bin/soak-aws extend` stores. Hosts read it when their time is over.
resource "aws_ssm_parameter" "end" {
  #checkov:skip=CKV_AWS_337:a customer managed key costs 1 dollar a month, and a date is not a secret
  name             = "/${var.name}/end"
  description      = "Extended end of the hosts, if there is one"
  type             = "SecureString"
  value_wo         = "pending"
  value_wo_version = 1
}

resource "aws_iam_role" "terminator" {
  name_prefix = "${var.name}-end-"
  description = "Role in which EventBridge Scheduler terminates hosts of ${var.name}"

  permissions_boundary = var.permissions_boundary_arn

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "scheduler.amazonaws.com" }
      Condition = { StringEquals = { "aws:SourceAccount" = data.aws_caller_identity.current.account_id } }
    }]
  })
}

resource "aws_iam_role_policy" "terminator" {
  name_prefix = "end-"
  role        = aws_iam_role.terminator.id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "ec2:TerminateInstances"
      Resource  = "arn:${data.aws_partition.current.partition}:ec2:*:${data.aws_caller_identity.current.account_id}:instance/*"
      Condition = { StringEquals = { "aws:ResourceTag/Run" = var.name } }
    }]
  })
}

# Counts the costs of resources with the tag, if Run is activated as a cost allocation tag (docs/aws.md).
resource "aws_budgets_budget" "this" {
  count = var.budget_usd > 0 ? 1 : 0

  name         = "${var.name}-${var.region}" # a budget belongs to the account, not to a region
  budget_type  = "COST"
  limit_amount = tostring(var.budget_usd)
  limit_unit   = "USD"
  time_unit    = "MONTHLY"

  cost_filter {
    name   = "TagKeyValue"
    values = [format("user:Run$%s", var.name)]
  }

  dynamic "notification" {
    for_each = [
      { type = "ACTUAL", percent = 50 },
      { type = "ACTUAL", percent = 100 },
      { type = "FORECASTED", percent = 100 },
    ]

    content {
      notification_type          = notification.value.type
      comparison_operator        = "GREATER_THAN"
      threshold                  = notification.value.percent
      threshold_type             = "PERCENTAGE"
      subscriber_email_addresses = var.alert_emails
    }
  }
}
