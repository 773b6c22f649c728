# Hosts that terminate themselves. This module defines the common properties of all hosts.

# Ubuntu has the compose plugin and the SSM agent. Debian 12 lacks the plugin, Amazon Linux 2023
# lacks the agent.
data "aws_ssm_parameter" "ubuntu" {
  name = "/aws/service/canonical/ubuntu/server/24.04/stable/current/${var.architecture}/hvm/ebs-gp3/ami-id"
}

locals {
  names = [for i in range(var.host_count) : var.host_count == 1 ? var.name : "${var.name}-${i + 1}"]

  settings = [for i in range(var.host_count) : merge(var.settings, {
    BUCKET           = var.bucket
    REGION           = var.region
    TTL_MINUTES      = tostring(var.ttl_minutes)
    END_PARAMETER    = var.guard.end_parameter
    STATUS_PARAMETER = var.status_parameters[i]
  })]

  files = merge(var.files, {
    "begin.sh"   = file("${path.module}/begin.sh")
    "aws.sh"     = file("${path.module}/aws.sh")
    "end.sh"     = file("${path.module}/end.sh")
    "notices.sh" = file("${path.module}/notices.sh")
    "setup.sh"   = var.script
    "objects"    = join("", [for key, sha256 in var.objects : "${sha256} ${key}\n"])
  })

  # A single command, because cloud-init continues after a command that failed.
  cloud_config = [for settings in local.settings : {
    runcmd = [["/bin/bash", "/opt/soak/setup.sh"]]
    write_files = concat(
      [for name, content in local.files : { path = "/opt/soak/${name}", permissions = "0644", content = content }],
      [{
        path        = "/opt/soak/settings.env"
        permissions = "0600"
        content     = join("", [for name, value in settings : "${name}='${value}'\n"])
      }],
    )
  }]

  user_data = [for c in local.cloud_config : join("\n", ["#cloud-config", yamlencode(c)])]
}

resource "aws_launch_template" "this" {
  #checkov:skip=CKV_AWS_88:hosts are in a public subnet, because a NAT gateway has an idle timeout and a price; security groups protect them
  #checkov:skip=CKV_AWS_341:2 if pods write shards in the role of their host, otherwise 1
  name_prefix = "${var.name}-"

  # Only the template can set connection tracking. It therefore also sets subnet and security group, because
  # EC2 rejects an interface in the template together with a subnet of the instance.
  network_interfaces {
    subnet_id                   = var.network.subnet_id
    security_groups             = [var.security_group_id]
    associate_public_ip_address = var.network.public ? true : null
    delete_on_termination       = true

    dynamic "connection_tracking_specification" {
      for_each = var.connection_tracking_timeout_seconds == null ? [] : [var.connection_tracking_timeout_seconds]

      content {
        tcp_established_timeout = connection_tracking_specification.value
      }
    }
  }

  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = var.metadata_hops
  }
}

# These are plain instances, because an Auto Scaling group would replace hosts that have terminated themselves.
resource "aws_instance" "this" {
  #checkov:skip=CKV_AWS_126:Prometheus scrapes every 5 s, more often than detailed monitoring, which has a price
  count = var.host_count

  ami                                  = data.aws_ssm_parameter.ubuntu.insecure_value
  instance_type                        = var.instance_type
  iam_instance_profile                 = aws_iam_instance_profile.this.name
  ebs_optimized                        = true
  instance_initiated_shutdown_behavior = "terminate"

  user_data                   = local.user_data[count.index]
  user_data_replace_on_change = true

  launch_template {
    id      = aws_launch_template.this.id
    version = aws_launch_template.this.latest_version
  }

  metadata_options {
    http_endpoint               = "enabled"
    http_tokens                 = "required"
    http_put_response_hop_limit = var.metadata_hops
  }

  root_block_device {
    volume_type = "gp3"
    volume_size = var.disk_gib
    encrypted   = true
  }

  # default_tags do not apply to volumes that an instance creates.
  volume_tags = merge(data.aws_default_tags.current.tags, { Name = local.names[count.index] })

  tags = { Name = local.names[count.index], Host = var.host_names[count.index] }

  lifecycle {
    # Canonical publishes a new image every few weeks, possibly during a soak.
    ignore_changes = [ami]

    precondition {
      condition     = length(base64encode(local.user_data[count.index])) <= 16384 / 3 * 4
      error_message = "The user data of ${local.names[count.index]} exceeds 16 KiB, the limit of EC2."
    }
  }
}

data "aws_default_tags" "current" {}

# If a host does not terminate itself, this schedule terminates it a quarter of an hour later. The time counts from the
# creation of the host, not from the plan, because an hour may pass between plan and apply.
resource "terraform_data" "end" {
  count = var.host_count

  input            = formatdate("YYYY-MM-DD'T'hh:mm:ss", timeadd(timestamp(), "${var.ttl_minutes + 15}m"))
  triggers_replace = [aws_instance.this[count.index].id]

  lifecycle {
    ignore_changes = [input] # a later plan must not postpone the end
  }
}

resource "aws_scheduler_schedule" "end" {
  #checkov:skip=CKV_AWS_297:contains the id of an instance and no secret
  count = var.host_count

  name                         = "end-${local.names[count.index]}"
  group_name                   = var.guard.schedule_group
  description                  = "Terminates ${local.names[count.index]} if it still exists"
  schedule_expression          = "at(${terraform_data.end[count.index].output})"
  schedule_expression_timezone = "UTC"

  flexible_time_window {
    mode = "OFF"
  }

  target {
    arn      = "arn:aws:scheduler:::aws-sdk:ec2:terminateInstances"
    role_arn = var.guard.terminator_arn
    input    = jsonencode({ InstanceIds = [aws_instance.this[count.index].id] })

    retry_policy {
      maximum_event_age_in_seconds = 3600
      maximum_retry_attempts       = 10
    }
  }

  # `bin/soak-aws extend` changes the time, and a later plan must not reset it. A new host gets a new schedule.
  lifecycle {
    ignore_changes       = [schedule_expression]
    replace_triggered_by = [terraform_data.end[count.index]]
  }
}
