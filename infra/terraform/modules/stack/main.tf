# The host with what is tested: the stack of compose.yaml, as it lay where terraform ran.

locals {
  # Owned here, so that they go with everything else. The host stores their values, which therefore
  # never enter the state.
  secrets = "/${var.name}/stack/secrets"
  status  = "/${var.name}/stack/status"

  # What the stack's Alertmanager may do, where it is to tell anybody.
  tells = var.alerts_topic_arn == "" ? [] : [{ Effect = "Allow", Action = ["sns:Publish"], Resource = [var.alerts_topic_arn] }]
}

resource "aws_ssm_parameter" "secrets" {
  #checkov:skip=CKV_AWS_337:a key of its own costs 1 dollar a month and protects no better, since the same role reads both
  name             = local.secrets
  description      = "Token and passwords of the stack, as lines of .env"
  type             = "SecureString"
  value_wo         = "pending"
  value_wo_version = 1
}

resource "aws_ssm_parameter" "status" {
  #checkov:skip=CKV_AWS_337:a key of its own costs 1 dollar a month and protects no better, since the same role reads both
  name             = local.status
  description      = "How far the setup of the stack's host is"
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

  statements = concat(local.tells, [
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
    # Prometheus looks for the runners' hosts by their tags. Their addresses are not written here: then another number of
    # runners would make another stack.
    {
      Effect   = "Allow"
      Action   = ["ec2:DescribeInstances"]
      Resource = ["*"] # it knows no resources
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
