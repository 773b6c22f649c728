resource "aws_security_group" "this" {
  #checkov:skip=CKV2_AWS_5:attached by the launch template of module host, which the check does not follow
  name_prefix = "${var.name}-runners-"
  description = "Runners: the Kubernetes API for operators, each other, and out to the stack"
  vpc_id      = var.network.vpc_id

  tags = { Name = "${var.name}-runners" }

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_vpc_security_group_ingress_rule" "operators" {
  for_each = toset(var.operator_cidrs)

  security_group_id = aws_security_group.this.id
  description       = "Operators: the Kubernetes API"
  cidr_ipv4         = each.value
  ip_protocol       = "tcp"
  from_port         = 6443
  to_port           = 6443
}

locals {
  # What the nodes of k3s say to each other.
  between_nodes = {
    api     = { protocol = "tcp", port = 6443 }
    kubelet = { protocol = "tcp", port = 10250 }
    vxlan   = { protocol = "udp", port = 8472 }
  }
}

resource "aws_vpc_security_group_ingress_rule" "nodes" {
  for_each = local.between_nodes

  security_group_id            = aws_security_group.this.id
  description                  = "Nodes: ${each.key}"
  referenced_security_group_id = aws_security_group.this.id
  ip_protocol                  = each.value.protocol
  from_port                    = each.value.port
  to_port                      = each.value.port
}

resource "aws_vpc_security_group_egress_rule" "nodes" {
  for_each = local.between_nodes

  security_group_id            = aws_security_group.this.id
  description                  = "Nodes: ${each.key}"
  referenced_security_group_id = aws_security_group.this.id
  ip_protocol                  = each.value.protocol
  from_port                    = each.value.port
  to_port                      = each.value.port
}

resource "aws_vpc_security_group_egress_rule" "stack" {
  security_group_id            = aws_security_group.this.id
  description                  = "The service under test"
  referenced_security_group_id = var.stack_security_group_id
  ip_protocol                  = "tcp"
  from_port                    = 80
  to_port                      = 80
}

resource "aws_vpc_security_group_ingress_rule" "stack" {
  #checkov:skip=CKV_AWS_260:wrong alarm, the port is open to a security group and not to 0.0.0.0/0
  security_group_id            = var.stack_security_group_id
  description                  = "Runners"
  referenced_security_group_id = aws_security_group.this.id
  ip_protocol                  = "tcp"
  from_port                    = 80
  to_port                      = 80
}

# The exporter of the machine's metrics listens on all addresses, since the private one is what the public one leads to:
# what closes it is that only the stack is let in.
resource "aws_vpc_security_group_ingress_rule" "exporter" {
  security_group_id            = aws_security_group.this.id
  description                  = "The stack's Prometheus"
  referenced_security_group_id = var.stack_security_group_id
  ip_protocol                  = "tcp"
  from_port                    = 9100
  to_port                      = 9100
}

resource "aws_vpc_security_group_egress_rule" "exporter" {
  security_group_id            = var.stack_security_group_id
  description                  = "Metrics of the runners' hosts"
  referenced_security_group_id = aws_security_group.this.id
  ip_protocol                  = "tcp"
  from_port                    = 9100
  to_port                      = 9100
}

# Packages, images and AWS. Name service and time are the VPC's own, which no rule concerns.
resource "aws_vpc_security_group_egress_rule" "web" {
  for_each = toset(["80", "443"])

  security_group_id = aws_security_group.this.id
  description       = "Packages, images, AWS"
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "tcp"
  from_port         = tonumber(each.value)
  to_port           = tonumber(each.value)
}
