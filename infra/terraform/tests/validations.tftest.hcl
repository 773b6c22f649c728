# Each validation, with an input that it must reject. Every variable that a run sets is listed among
# its failures, so each must be rejected separately. Values that EC2 would reject half an hour later, or that
# would ruin a run, are rejected before any resource is created.

mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  alert_emails = ["me@example.com"]
  stack_dir    = "tests/files/stack"
  runner_dir   = "tests/files/runner"
}

run "values_below_the_minimum" {
  command = plan

  variables {
    alert_emails          = ["nobody"]
    alerts_topic_arn      = "soak"
    region                = "frankfurt"
    name                  = "Soak"
    connections           = 0
    noop_interval_seconds = 0.01
    stack_instance_type   = "large"
    runner_instance_type  = "c5"
    runner_node_count     = -1
    stack_disk_gib        = 8
    runner_disk_gib       = 8
    ttl_minutes           = 10
    retention_days        = 0
    stack_dir             = "tests" # no files of the stack
  }

  expect_failures = [
    var.alert_emails,
    var.alerts_topic_arn,
    var.region,
    var.name,
    var.connections,
    var.noop_interval_seconds,
    var.stack_instance_type,
    var.runner_instance_type,
    var.runner_node_count,
    var.stack_disk_gib,
    var.runner_disk_gib,
    var.ttl_minutes,
    var.retention_days,
    var.stack_dir,
  ]
}

run "values_above_the_maximum" {
  command = plan

  variables {
    laptop_cidrs                        = ["0.0.0.0/0"]
    name                                = "a-name-that-is-too-long-for-a-bucket"
    connections                         = 600000
    noop_interval_seconds               = 4000
    connection_tracking_timeout_seconds = 500000
    runner_node_count                   = 51
    stack_disk_gib                      = 2000
    runner_disk_gib                     = 2000
    ttl_minutes                         = 10000
    retention_days                      = 1000
    budget_usd                          = -1
    zone                                = "us-west-2a" # of another region
  }

  expect_failures = [
    var.laptop_cidrs,
    var.name,
    var.connections,
    var.noop_interval_seconds,
    var.connection_tracking_timeout_seconds,
    var.runner_node_count,
    var.stack_disk_gib,
    var.runner_disk_gib,
    var.ttl_minutes,
    var.retention_days,
    var.budget_usd,
    var.zone,
  ]
}

run "values_of_the_wrong_type" {
  command = plan

  variables {
    laptop_cidrs             = ["me"]
    alert_emails             = ["me"]
    connections              = 1.5
    stack_instance_type      = "c7g.large"
    runner_instance_type     = "m6gd"
    runner_node_count        = 1.5
    ttl_minutes              = 90.5
    retention_days           = 1.5
    permissions_boundary_arn = "boundary"
    subnet_id                = "vpc-0123"
    tags                     = { Run = "mine" }
  }

  expect_failures = [
    var.laptop_cidrs,
    var.alert_emails,
    var.connections,
    var.stack_instance_type,
    var.runner_instance_type,
    var.runner_node_count,
    var.ttl_minutes,
    var.retention_days,
    var.permissions_boundary_arn,
    var.subnet_id,
    var.tags,
  ]
}

run "nitro_v6_without_a_timeout" {
  command = plan

  variables {
    stack_instance_type  = "c8i.large"
    runner_instance_type = "m8a.xlarge"
    runner_dir           = "tests/files/stack" # without k3s
  }

  expect_failures = [
    var.stack_instance_type,
    var.runner_instance_type,
    var.runner_dir,
  ]
}

# A validation that reads another variable is skipped if that variable is not valid, so these are not in the runs above.
run "a_budget_without_an_address_and_runners_without_files" {
  command = plan

  variables {
    alert_emails                        = []
    runner_dir                          = null
    connection_tracking_timeout_seconds = 30
  }

  expect_failures = [
    var.alert_emails,
    var.runner_dir,
    var.connection_tracking_timeout_seconds,
  ]
}

# Valid values close to the limits.
run "no_budget_and_a_graphics_card" {
  command = plan

  variables {
    alert_emails         = []
    budget_usd           = 0
    runner_instance_type = "g4dn.xlarge"
  }

  assert {
    condition     = output.deployment.settings.runner_architecture == "amd64"
    error_message = "A type with a graphics card (g4dn) is not Graviton."
  }
}

run "graviton" {
  command = plan

  variables {
    runner_instance_type = "c7gn.large"
  }

  assert {
    condition     = output.deployment.settings.runner_architecture == "arm64"
    error_message = "Graviton hosts must use an arm64 image."
  }
}

run "nitro_v6_with_a_timeout" {
  command = plan

  variables {
    stack_instance_type                 = "c8i.large"
    runner_instance_type                = "m8a.xlarge"
    connection_tracking_timeout_seconds = 86400
  }
}
