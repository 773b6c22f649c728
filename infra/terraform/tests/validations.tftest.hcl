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
  ]
}

run "values_of_the_wrong_type" {
  command = plan

  variables {
    laptop_cidrs         = ["me"]
    alert_emails         = ["me"]
    connections          = 1.5
    stack_instance_type  = "c7g.large"
    runner_instance_type = "m6gd"
    runner_node_count    = 1.5
    ttl_minutes          = 90.5
    retention_days       = 1.5
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
  ]
}

run "nitro_v6_without_a_timeout" {
  command = plan

  variables {
    stack_instance_type  = "c8i.large"
    runner_instance_type = "m8a.xlarge"
  }

  expect_failures = [
    var.stack_instance_type,
    var.runner_instance_type,
  ]
}

run "a_negative_budget" {
  command = plan

  variables {
    budget_usd = -1
  }

  expect_failures = [
    var.budget_usd,
  ]
}

run "a_budget_without_an_address" {
  command = plan

  variables {
    alert_emails = []
  }

  expect_failures = [
    var.alert_emails,
  ]
}

run "a_zone_of_another_region" {
  command = plan

  variables {
    zone = "us-west-2a"
  }

  expect_failures = [
    var.zone,
  ]
}

run "a_folder_without_files_of_the_stack" {
  command = plan

  variables {
    stack_dir = "tests"
  }

  expect_failures = [
    var.stack_dir,
  ]
}

run "no_folder_for_the_runners" {
  command = plan

  variables {
    runner_dir = null
  }

  expect_failures = [
    var.runner_dir,
  ]
}

run "files_without_k3s" {
  command = plan

  variables {
    runner_dir = "tests/files/stack"
  }

  expect_failures = [
    var.runner_dir,
  ]
}

run "invalid_settings_of_an_organization" {
  command = plan

  variables {
    permissions_boundary_arn = "boundary"
    subnet_id                = "vpc-0123"
    tags                     = { Run = "mine" }
  }

  expect_failures = [
    var.permissions_boundary_arn,
    var.subnet_id,
    var.tags,
  ]
}

run "a_connection_tracking_timeout_that_is_too_short" {
  command = plan

  variables {
    connection_tracking_timeout_seconds = 30
  }

  expect_failures = [
    var.connection_tracking_timeout_seconds,
  ]
}

# Valid values close to the limits.
run "no_budget" {
  command = plan

  variables {
    alert_emails = []
    budget_usd   = 0
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

run "instance_types_with_a_g_that_are_not_graviton" {
  command = plan

  variables {
    runner_instance_type = "g4dn.xlarge"
  }

  assert {
    condition     = output.deployment.settings.runner_architecture == "amd64"
    error_message = "A type with a graphics card (g4dn) is not Graviton."
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
