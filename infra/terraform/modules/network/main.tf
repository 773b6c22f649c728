# One public subnet in a zone that offers the hosts' types. There is no NAT gateway and no load balancer: each has an
# idle timeout of 350 s or less, costs money while no soak runs, and would be part of the route between runners and
# target.

data "aws_availability_zones" "available" {
  #checkov:skip=CKV_AWS_394:any zone of the region is suitable; each deployment creates its own subnet
  state = "available"

  # Local zones and Wavelength zones require opt-in and do not have all instance types.
  filter {
    name   = "opt-in-status"
    values = ["opt-in-not-required"]
  }
}

# Not every zone has every type. For example, us-east-1e lacks c5 and all later types.
data "aws_ec2_instance_type_offerings" "this" {
  for_each = toset(var.instance_types)

  location_type = "availability-zone"

  filter {
    name   = "instance-type"
    values = [each.value]
  }
}

locals {
  network_count = var.subnet_id == null ? 1 : 0 # 0: the subnet exists

  offering = [
    for zone in data.aws_availability_zones.available.names : zone
    if alltrue([for o in data.aws_ec2_instance_type_offerings.this : contains(o.locations, zone)])
  ]
  zone = var.zone == null ? try(local.offering[0], "none") : var.zone
}

data "aws_subnet" "existing" {
  count = 1 - local.network_count

  id = var.subnet_id

  lifecycle {
    postcondition {
      condition     = contains(local.offering, self.availability_zone)
      error_message = "The zone ${self.availability_zone} of ${var.subnet_id} does not offer ${join(" and ", var.instance_types)}; choose another subnet or type."
    }
  }
}

resource "aws_vpc" "this" {
  count = local.network_count

  #checkov:skip=CKV2_AWS_11:exists for hours and has no data; flow logs would cost more than the hosts
  cidr_block           = "10.20.0.0/16"
  enable_dns_hostnames = true

  tags = { Name = var.name }
}

# The default group is not used. It has no rules, so that no resource can depend on them.
resource "aws_default_security_group" "this" {
  count = local.network_count

  vpc_id = aws_vpc.this[0].id
}

resource "aws_internet_gateway" "this" {
  count = local.network_count

  vpc_id = aws_vpc.this[0].id

  tags = { Name = var.name }
}

resource "aws_subnet" "public" {
  count = local.network_count

  vpc_id            = aws_vpc.this[0].id
  availability_zone = local.zone
  cidr_block        = "10.20.0.0/20"

  tags = { Name = "${var.name}-public" }

  lifecycle {
    precondition {
      condition     = contains(local.offering, local.zone)
      error_message = "${var.zone == null ? "No zone of ${var.region}" : "The zone ${var.zone}"} offers ${join(" and ", var.instance_types)}${length(local.offering) > 0 ? "; use one of ${join(", ", local.offering)}" : "; choose another type or region"}."
    }
  }
}

resource "aws_route_table" "public" {
  count = local.network_count

  vpc_id = aws_vpc.this[0].id

  route {
    cidr_block = "0.0.0.0/0"
    gateway_id = aws_internet_gateway.this[0].id
  }

  tags = { Name = "${var.name}-public" }
}

resource "aws_route_table_association" "public" {
  count = local.network_count

  route_table_id = aws_route_table.public[0].id
  subnet_id      = aws_subnet.public[0].id
}

# The endpoint is free and keeps shards inside AWS's network.
resource "aws_vpc_endpoint" "s3" {
  count = local.network_count

  vpc_id            = aws_vpc.this[0].id
  service_name      = "com.amazonaws.${var.region}.s3"
  vpc_endpoint_type = "Gateway"
  route_table_ids   = [aws_route_table.public[0].id]

  tags = { Name = "${var.name}-s3" }
}
