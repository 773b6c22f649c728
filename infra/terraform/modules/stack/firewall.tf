resource "aws_security_group" "this" {
  #checkov:skip=CKV2_AWS_5:the launch template of module host attaches it, which the check does not follow
  name_prefix = "${var.name}-stack-"
  description = "The stack: the service and the reference for runners, the service for laptops in laptop_cidrs"
  vpc_id      = var.network.vpc_id

  tags = { Name = "${var.name}-stack" }

  lifecycle {
    create_before_destroy = true
  }
}

# Only the laptops in laptop_cidrs may connect from outside. Passwords and the token are sent through Systems Manager
# (soak-aws open), whose connections start on the host and need no open port.
resource "aws_vpc_security_group_ingress_rule" "laptops" {
  for_each = toset(var.laptop_cidrs)

  security_group_id = aws_security_group.this.id
  description       = "Laptops"
  cidr_ipv4         = each.value
  ip_protocol       = "tcp"
  from_port         = 80
  to_port           = 80
}

# Packages, images, AWS. Security groups do not apply to the name service and the time service of the VPC.
resource "aws_vpc_security_group_egress_rule" "web" {
  for_each = toset(["80", "443"])

  security_group_id = aws_security_group.this.id
  description       = "Packages, images, AWS"
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "tcp"
  from_port         = tonumber(each.value)
  to_port           = tonumber(each.value)
}
