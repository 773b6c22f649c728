# The hosts of the runners: k3s with the k6-operator, in the stack's subnet.

locals {
  token      = "/${var.name}/runners/token"
  kubeconfig = "/${var.name}/runners/kubeconfig"
  statuses   = [for i in range(var.node_count) : "/${var.name}/runners/status-${i}"]

  instances = merge(module.server.instances, module.agents[*].instances...)

  # A permission of both kinds of hosts: pods write shards.
  statements = [
    {
      Effect   = "Allow"
      Action   = ["s3:GetObject", "s3:PutObject"]
      Resource = ["${var.bucket_arn}/shards/*"]
    },
    {
      Effect   = "Allow"
      Action   = ["s3:ListBucket"]
      Resource = [var.bucket_arn]
    },
  ]
  files    = { "node.sh" = file("${path.module}/node.sh") }
  settings = { TOKEN_PARAMETER = aws_ssm_parameter.this["token"].name }
}

# This module owns the parameters, so that they are destroyed with the deployment. The hosts store the values, which
# therefore never enter the state.
resource "aws_ssm_parameter" "this" {
  #checkov:skip=CKV_AWS_337:a customer managed key costs 1 dollar a month and adds no protection, because the same role reads both
  for_each = { token = local.token, kubeconfig = local.kubeconfig }

  name             = each.value
  description      = "The ${each.key} of the runners' cluster"
  type             = "SecureString"
  value_wo         = "pending"
  value_wo_version = 1
}

resource "aws_ssm_parameter" "status" {
  #checkov:skip=CKV_AWS_337:a customer managed key costs 1 dollar a month and adds no protection, because the same role reads both
  count = var.node_count

  name             = local.statuses[count.index]
  description      = "State of the setup of a host of the runners"
  type             = "SecureString"
  value_wo         = "pending"
  value_wo_version = 1
}

module "server" {
  source = "../host"

  name                                = "${var.name}-runners"
  host_names                          = ["runner-1"]
  region                              = var.region
  network                             = var.network
  bucket                              = var.bucket
  objects                             = var.files
  security_group_id                   = aws_security_group.this.id
  guard                               = var.guard
  instance_type                       = var.instance_type
  architecture                        = var.architecture
  disk_gib                            = var.disk_gib
  connection_tracking_timeout_seconds = var.connection_tracking_timeout_seconds
  metadata_hops                       = 2 # pods write shards in the host's role
  ttl_minutes                         = var.ttl_minutes
  status_parameters                   = [aws_ssm_parameter.status[0].name]

  statements = concat(local.statements, [
    {
      Effect   = "Allow"
      Action   = ["ssm:GetParameter", "ssm:PutParameter"]
      Resource = [aws_ssm_parameter.this["token"].arn]
    },
    {
      Effect   = "Allow"
      Action   = ["ssm:PutParameter"]
      Resource = [aws_ssm_parameter.this["kubeconfig"].arn, aws_ssm_parameter.status[0].arn]
    },
  ])

  script = file("${path.module}/server.sh")
  files  = local.files
  settings = merge(local.settings, {
    KUBECONFIG_PARAMETER = aws_ssm_parameter.this["kubeconfig"].name
  })
}

module "agents" {
  source = "../host"
  count  = var.node_count > 1 ? 1 : 0

  name                                = "${var.name}-agents"
  host_count                          = var.node_count - 1
  host_names                          = [for i in range(var.node_count - 1) : "runner-${i + 2}"]
  region                              = var.region
  network                             = var.network
  bucket                              = var.bucket
  objects                             = var.files
  security_group_id                   = aws_security_group.this.id
  guard                               = var.guard
  instance_type                       = var.instance_type
  architecture                        = var.architecture
  disk_gib                            = var.disk_gib
  connection_tracking_timeout_seconds = var.connection_tracking_timeout_seconds
  metadata_hops                       = 2 # pods write shards in the host's role
  ttl_minutes                         = var.ttl_minutes
  status_parameters                   = slice(aws_ssm_parameter.status[*].name, 1, var.node_count)

  statements = concat(local.statements, [
    {
      Effect   = "Allow"
      Action   = ["ssm:GetParameter"]
      Resource = [aws_ssm_parameter.this["token"].arn]
    },
    {
      Effect   = "Allow"
      Action   = ["ssm:PutParameter"]
      Resource = slice(aws_ssm_parameter.status[*].arn, 1, var.node_count)
    },
  ])

  script   = file("${path.module}/agent.sh")
  files    = local.files
  settings = merge(local.settings, { SERVER_IP = one(module.server.private_ips) })
}
