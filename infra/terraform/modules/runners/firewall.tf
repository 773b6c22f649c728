resource "aws_security_group" "this" {
  #checkov:skip=CKV2_AWS_5:the launch template of module host attaches it, which the check does not follow
  name_prefix = "${var.name}-runners-"
  description = "Runners: traffic between runners, and to the stack"
  vpc_id      = var.network.vpc_id

  tags = { Name = "${var.name}-runners" }

  lifecycle {
    create_before_destroy = true
  }
}

locals {
  runners = aws_security_group.this.id
  stack   = var.stack_security_group_id

  # Allowed connections, with a rule on each side.
  flows = {
    api       = { what = "Nodes: the Kubernetes API", from = local.runners, to = local.runners, protocol = "tcp", port = 6443 }
    kubelet   = { what = "Nodes: the kubelet", from = local.runners, to = local.runners, protocol = "tcp", port = 10250 }
    vxlan     = { what = "Nodes: the network of pods", from = local.runners, to = local.runners, protocol = "udp", port = 8472 }
    service   = { what = "Runners to the service under test", from = local.runners, to = local.stack, protocol = "tcp", port = 80 }
    reference = { what = "Runners to the reference of the control group", from = local.runners, to = local.stack, protocol = "tcp", port = 7070 }
    # The exporter listens on all addresses, because AWS translates the public address to the private one. Only the
    # stack may connect to it.
    exporter = { what = "Prometheus to the exporters of the runners", from = local.stack, to = local.runners, protocol = "tcp", port = 9100 }
  }
}

resource "aws_vpc_security_group_ingress_rule" "between" {
  #checkov:skip=CKV_AWS_260:false positive, the ports are open to a security group and not to 0.0.0.0/0
  for_each = local.flows

  security_group_id            = each.value.to
  description                  = each.value.what
  referenced_security_group_id = each.value.from
  ip_protocol                  = each.value.protocol
  from_port                    = each.value.port
  to_port                      = each.value.port
}

resource "aws_vpc_security_group_egress_rule" "between" {
  for_each = local.flows

  security_group_id            = each.value.from
  description                  = each.value.what
  referenced_security_group_id = each.value.to
  ip_protocol                  = each.value.protocol
  from_port                    = each.value.port
  to_port                      = each.value.port
}

# Packages, images and AWS. Security groups do not apply to the name service and the time service of the VPC.
resource "aws_vpc_security_group_egress_rule" "web" {
  for_each = toset(["80", "443"])

  security_group_id = aws_security_group.this.id
  description       = "Packages, images, AWS"
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "tcp"
  from_port         = tonumber(each.value)
  to_port           = tonumber(each.value)
}
