# The resources of a deployment, by default and with several hosts for runners.

mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  alert_emails = ["me@example.com"]
  stack_dir    = "tests/files/stack"
  runner_dir   = "tests/files/runner"
}

run "defaults" {
  command = plan

  assert {
    condition     = var.stack_instance_type == "c5.large" && var.ttl_minutes == 180 && var.runner_node_count == 1
    error_message = "By default, a deployment must have two c5.large (4 vCPU, within the quota of a new account) for 3 hours."
  }

  assert {
    condition     = output.deployment.settings.name == "sse-soak" && output.deployment.settings.region == "us-east-1"
    error_message = "A setting that is not set must have its default."
  }

  assert {
    condition     = toset(keys(output.deployment.status_parameters)) == toset(["/sse-soak/stack/status", "/sse-soak/runners/status-0"])
    error_message = "Each host must have a parameter for the state of its setup."
  }

}

run "everything" {
  command = apply

  variables {
    runner_node_count = 3
  }

  assert {
    condition     = length(output.deployment.status_parameters) == 4 && toset(keys(output.deployment.instances)) == toset(["stack", "runner-1", "runner-2", "runner-3"])
    error_message = "There must be one host with the stack, one server and two agents."
  }

  assert {
    condition     = output.deployment.backend_url == "http://10.20.0.10" && output.deployment.control_url == "http://10.20.0.10:7070" && output.deployment.public_url == "http://203.0.113.20"
    error_message = "Runners must use the private address, laptops the public one."
  }

  assert {
    condition     = output.deployment.instances.stack == "i-0123456789abcdef0" && output.deployment.bucket == "sse-soak-mock"
    error_message = "The output must contain the id of the host and the bucket, which the next command needs."
  }
}

run "no_runners" {
  command = apply

  variables {
    runner_node_count = 0
    runner_dir        = null
  }

  assert {
    condition     = length(output.deployment.status_parameters) == 1 && output.deployment.kubeconfig_parameter == null
    error_message = "Without runners, there must be only the stack."
  }
}
