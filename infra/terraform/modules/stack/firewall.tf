resource "aws_security_group" "this" {
  #checkov:skip=CKV2_AWS_5:attached by the launch template of module host, which the check does not follow
  name_prefix = "${var.name}-stack-"
  description = "The stack: port 80 for operators and runners"
  vpc_id      = var.network.vpc_id

  tags = { Name = "${var.name}-stack" }

  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_vpc_security_group_ingress_rule" "operators" {
  for_each = toset(var.operator_cidrs)

  security_group_id = aws_security_group.this.id
  description       = "Operators"
  cidr_ipv4         = each.value
  ip_protocol       = "tcp"
  from_port         = 80
  to_port           = 80
}

# Packages, images, AWS. Name service and time are the VPC's own, which no rule concerns.
resource "aws_vpc_security_group_egress_rule" "web" {
  for_each = toset(["80", "443"])

  security_group_id = aws_security_group.this.id
  description       = "Packages, images, AWS"
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "tcp"
  from_port         = tonumber(each.value)
  to_port           = tonumber(each.value)
}
