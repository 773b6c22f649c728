# The host under test: the stack of compose.yaml, with the files of the machine that ran terraform.

locals {
  # This module owns the parameters, so that they are destroyed with the deployment. The host stores the values, which
  # therefore never enter the state.
  secrets = "/${var.name}/stack/secrets"
  status  = "/${var.name}/stack/status"

  # The permission of the stack's Alertmanager, if there is a topic for alerts.
  alert_statements = var.alerts_topic_arn == "" ? [] : [{ Effect = "Allow", Action = ["sns:Publish"], Resource = [var.alerts_topic_arn] }]
}

resource "aws_ssm_parameter" "secrets" {
  #checkov:skip=CKV_AWS_337:a customer managed key costs 1 dollar a month and adds no protection, because the same role reads both
  name             = local.secrets
  description      = "Token and passwords of the stack, as lines of .env"
  type             = "SecureString"
  value_wo         = "pending"
  value_wo_version = 1
}

resource "aws_ssm_parameter" "status" {
  #checkov:skip=CKV_AWS_337:a customer managed key costs 1 dollar a month and adds no protection, because the same role reads both
  name             = local.status
  description      = "State of the setup of the stack's host"
  type             = "SecureString"
  value_wo         = "pending"
  value_wo_version = 1
}

module "host" {
  source = "../host"

  name                                = "${var.name}-stack"
  host_names                          = ["stack"]
  region                              = var.region
  network                             = var.network
  bucket                              = var.bucket
  objects                             = var.files
  security_group_id                   = aws_security_group.this.id
  guard                               = var.guard
  instance_type                       = var.instance_type
  disk_gib                            = var.disk_gib
  connection_tracking_timeout_seconds = var.connection_tracking_timeout_seconds
  ttl_minutes                         = var.ttl_minutes
  status_parameters                   = [aws_ssm_parameter.status.name]

  statements = concat(local.alert_statements, [
    {
      Effect   = "Allow"
      Action   = ["ssm:GetParameter", "ssm:PutParameter"]
      Resource = [aws_ssm_parameter.secrets.arn]
    },
    {
      Effect   = "Allow"
      Action   = ["ssm:PutParameter"]
      Resource = [aws_ssm_parameter.status.arn]
    },
    # Prometheus finds the runners' hosts by their tags. Their addresses are not part of the configuration, because a
    # different number of runners would then replace the stack.
    {
      Effect   = "Allow"
      Action   = ["ec2:DescribeInstances"]
      Resource = ["*"] # this action does not support resources
    },
  ])

  script = file("${path.module}/setup.sh")
  settings = {
    ALERT_SNS_TOPIC   = var.alerts_topic_arn
    CONNECTIONS       = tostring(var.connections)
    NOOP_INTERVAL     = tostring(var.noop_interval_seconds)
    RUN               = var.name
    SECRETS_PARAMETER = aws_ssm_parameter.secrets.name
  }
}
