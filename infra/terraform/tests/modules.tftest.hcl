# Requirements for each module except host.

mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  name                                = "sse-soak"
  region                              = "eu-central-1"
  network                             = { vpc_id = "vpc-0123456789abcdef0", subnet_id = "subnet-0123456789abcdef0", public = true }
  guard                               = { schedule_group = "sse-soak", terminator_arn = "arn:aws:iam::123456789012:role/end", end_parameter = "/sse-soak/end", end_parameter_arn = "arn:aws:ssm:eu-central-1:123456789012:parameter/sse-soak/end" }
  instance_type                       = "c5.large"
  disk_gib                            = 30
  connection_tracking_timeout_seconds = null
  ttl_minutes                         = 180
}

run "network" {
  command = apply

  module {
    source = "./modules/network"
  }

  variables {
    instance_types = ["c5.large", "m5.large"]
  }

  assert {
    condition     = aws_subnet.public[0].availability_zone == "eu-central-1a" && aws_vpc_endpoint.s3[0].vpc_endpoint_type == "Gateway" && aws_vpc_endpoint.s3[0].service_name == "com.amazonaws.eu-central-1.s3"
    error_message = "There must be one zone, and a gateway endpoint for S3, which is free."
  }

  assert {
    condition     = length(aws_default_security_group.this[0].ingress) == 0 && length(aws_default_security_group.this[0].egress) == 0
    error_message = "The default security group must not allow any traffic."
  }
}

run "a_first_zone_without_the_type" {
  command = plan

  module {
    source = "./modules/network"
  }

  variables {
    instance_types = ["c5.large", "m5.large"]
  }

  override_data {
    target = data.aws_ec2_instance_type_offerings.this["m5.large"]
    values = { locations = ["eu-central-1b"] }
  }

  assert {
    condition     = aws_subnet.public[0].availability_zone == "eu-central-1b"
    error_message = "The zone must offer all instance types."
  }
}

run "a_zone_without_the_type" {
  command = plan

  module {
    source = "./modules/network"
  }

  variables {
    instance_types = ["c5.large"]
    zone           = "eu-central-1c"
  }

  expect_failures = [aws_subnet.public]
}

run "an_existing_subnet" {
  command = plan

  module {
    source = "./modules/network"
  }

  variables {
    instance_types = ["c5.large"]
    subnet_id      = "subnet-0fedcba9876543210"
  }

  override_data {
    target = data.aws_subnet.existing
    values = { vpc_id = "vpc-0fedcba9876543210", availability_zone = "eu-central-1b" }
  }

  assert {
    condition     = length(aws_vpc.this) == 0 && length(aws_internet_gateway.this) == 0 && output.subnet_id == var.subnet_id && output.vpc_id == "vpc-0fedcba9876543210" && output.zone == "eu-central-1b" && !output.public
    error_message = "With an existing subnet, no network resource must be created."
  }
}

run "an_existing_subnet_without_the_type" {
  command = plan

  module {
    source = "./modules/network"
  }

  variables {
    instance_types = ["c5.large"]
    subnet_id      = "subnet-0fedcba9876543210"
  }

  override_data {
    target = data.aws_subnet.existing
    values = { vpc_id = "vpc-0fedcba9876543210", availability_zone = "eu-central-1e" }
  }

  expect_failures = [data.aws_subnet.existing]
}

run "no_zone_with_the_type" {
  command = plan

  module {
    source = "./modules/network"
  }

  variables {
    instance_types = ["c5.large"]
  }

  override_data {
    target = data.aws_ec2_instance_type_offerings.this
    values = { locations = [] }
  }

  expect_failures = [aws_subnet.public]
}

run "storage" {
  command = apply

  module {
    source = "./modules/storage"
  }

  variables {
    retention_days = 30
    stack_dir      = "tests/files/stack"
    runner_dir     = "tests/files/runner"
  }

  assert {
    condition     = alltrue([aws_s3_bucket_public_access_block.this.block_public_acls, aws_s3_bucket_public_access_block.this.block_public_policy, aws_s3_bucket_public_access_block.this.ignore_public_acls, aws_s3_bucket_public_access_block.this.restrict_public_buckets])
    error_message = "The bucket must be private."
  }

  assert {
    condition     = aws_s3_bucket_versioning.this.versioning_configuration[0].status == "Enabled" && one(one(aws_s3_bucket_server_side_encryption_configuration.this.rule).apply_server_side_encryption_by_default).sse_algorithm == "AES256"
    error_message = "The bucket must be versioned and encrypted."
  }

  assert {
    condition     = aws_s3_bucket_lifecycle_configuration.this.rule[0].expiration[0].days == 30 && aws_s3_bucket_lifecycle_configuration.this.rule[0].noncurrent_version_expiration[0].noncurrent_days == 1
    error_message = "Objects and their previous versions must expire."
  }

  assert {
    condition     = jsondecode(aws_s3_bucket_policy.this.policy).Statement[0].Effect == "Deny" && jsondecode(aws_s3_bucket_policy.this.policy).Statement[0].Condition.Bool["aws:SecureTransport"] == "false"
    error_message = "The bucket must reject requests without TLS."
  }

  assert {
    condition     = { for key, sha256 in output.runner_files : basename(key) => sha256 } == { for name in ["image-k6.tar.gz", "k3s", "operator.yaml"] : name => filesha256("tests/files/runner/${name}") }
    error_message = "The bucket must contain the files of the runners' hosts, with the SHA-256 that hosts check."
  }

  assert {
    condition     = values(output.stack_files) == [filesha256("tests/files/stack/files.tar.gz")] && alltrue([for key in keys(output.stack_files) : startswith(key, "images/")])
    error_message = "The bucket must contain the files of the stack's host, with the SHA-256 that the host checks."
  }

  assert {
    condition     = aws_s3_bucket.this.force_destroy
    error_message = "terraform destroy must delete the bucket even if it contains objects."
  }
}

run "guard" {
  command = apply

  module {
    source = "./modules/guard"
  }

  variables {
    budget_usd   = 20
    alert_emails = ["me@example.com"]
  }

  assert {
    condition     = aws_budgets_budget.this[0].limit_amount == "20" && length(aws_budgets_budget.this[0].notification) == 3 && alltrue([for n in aws_budgets_budget.this[0].notification : contains(n.subscriber_email_addresses, "me@example.com")])
    error_message = "The budget must have a limit and notify the addresses."
  }

  assert {
    condition     = aws_budgets_budget.this[0].name == "sse-soak-eu-central-1"
    error_message = "A budget belongs to the account, so its name must contain the region."
  }

  assert {
    condition     = one(one(aws_budgets_budget.this[0].cost_filter).values) == "user:Run$sse-soak"
    error_message = "The budget must count the resources with the tag."
  }

  assert {
    condition     = jsondecode(aws_iam_role_policy.terminator.policy).Statement[0].Action == "ec2:TerminateInstances" && jsondecode(aws_iam_role_policy.terminator.policy).Statement[0].Condition.StringEquals["aws:ResourceTag/Run"] == "sse-soak"
    error_message = "The schedules must be allowed to terminate only hosts of this deployment."
  }
}

run "no_budget" {
  command = plan

  module {
    source = "./modules/guard"
  }

  variables {
    budget_usd   = 0
    alert_emails = []
  }

  assert {
    condition     = length(aws_budgets_budget.this) == 0
    error_message = "With budget_usd = 0, there must be no budget."
  }
}

run "stack" {
  command = apply

  module {
    source = "./modules/stack"
  }

  variables {
    laptop_cidrs          = []
    bucket                = "sse-soak-mock"
    files                 = { "images/00/files.tar.gz" = "00" }
    connections           = 1200
    noop_interval_seconds = 15
    alerts_topic_arn      = ""
  }

  assert {
    condition     = length(aws_vpc_security_group_ingress_rule.laptops) == 0
    error_message = "By default, no port may be open to the internet, because passwords and the token would be sent unencrypted."
  }

  assert {
    condition     = length(local.alert_statements) == 0
    error_message = "Without a topic, there must be no permission to publish."
  }

  assert {
    condition     = aws_ssm_parameter.secrets.type == "SecureString" && aws_ssm_parameter.secrets.value_wo_version == 1
    error_message = "The secrets must be encrypted and write-only, so that no value enters the state."
  }
}

run "stack_with_laptops_and_a_topic_for_alerts" {
  command = plan

  module {
    source = "./modules/stack"
  }

  variables {
    laptop_cidrs          = ["203.0.113.7/32"]
    bucket                = "sse-soak-mock"
    files                 = { "images/00/files.tar.gz" = "00" }
    connections           = 1200
    noop_interval_seconds = 15
    alerts_topic_arn      = "arn:aws:sns:eu-central-1:123456789012:soak"
  }

  assert {
    condition     = length(aws_vpc_security_group_ingress_rule.laptops) == 1 && alltrue([for r in aws_vpc_security_group_ingress_rule.laptops : r.cidr_ipv4 == "203.0.113.7/32" && r.from_port == 80 && r.to_port == 80])
    error_message = "Laptops must reach port 80 and no other port."
  }

  assert {
    condition     = local.alert_statements[0].Resource[0] == var.alerts_topic_arn
    error_message = "The Alertmanager must be allowed to publish only to the topic."
  }
}

run "runners" {
  command = apply

  module {
    source = "./modules/runners"
  }

  variables {
    node_count              = 3
    architecture            = "amd64"
    stack_security_group_id = "sg-0fedcba9876543210"
    bucket                  = "sse-soak-mock"
    bucket_arn              = "arn:aws:s3:::sse-soak-mock"
    files                   = { "images/00/k3s" = "00" }
  }

  assert {
    condition     = { for name, r in aws_vpc_security_group_ingress_rule.between : name => r.from_port if r.security_group_id == "sg-0fedcba9876543210" } == { reference = 7070, service = 80 } && alltrue([for name in ["reference", "service"] : aws_vpc_security_group_ingress_rule.between[name].referenced_security_group_id == aws_security_group.this.id])
    error_message = "The stack must admit the runners' security group to the service and to the reference of the control group."
  }

  assert {
    condition     = { for name, r in aws_vpc_security_group_ingress_rule.between : name => r.from_port if r.referenced_security_group_id == "sg-0fedcba9876543210" } == { exporter = 9100 } && aws_vpc_security_group_ingress_rule.between["exporter"].security_group_id == aws_security_group.this.id
    error_message = "Only the stack may read the metrics of the runners' hosts."
  }

  assert {
    condition     = alltrue([for name, r in aws_vpc_security_group_ingress_rule.between : [r.security_group_id, r.referenced_security_group_id, r.ip_protocol, r.from_port, r.to_port] == [for out in [aws_vpc_security_group_egress_rule.between[name]] : [out.referenced_security_group_id, out.security_group_id, out.ip_protocol, out.from_port, out.to_port]][0]])
    error_message = "Each ingress rule must have a matching egress rule on the other side."
  }

  assert {
    condition     = toset([for r in aws_vpc_security_group_ingress_rule.between : r.from_port if r.security_group_id == r.referenced_security_group_id]) == toset([6443, 10250, 8472])
    error_message = "Nodes must reach each other."
  }

  assert {
    condition     = toset(keys(output.instances)) == toset(["runner-1", "runner-2", "runner-3"]) && length(output.status_parameters) == 3
    error_message = "There must be one server and two agents, with their names in dashboards."
  }

  assert {
    condition     = aws_ssm_parameter.this["token"].type == "SecureString" && aws_ssm_parameter.this["kubeconfig"].type == "SecureString" && aws_ssm_parameter.this["token"].value_wo_version == 1
    error_message = "The token and the kubeconfig must be encrypted and write-only, so that no value enters the state."
  }
}
