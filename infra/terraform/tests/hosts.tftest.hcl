# Requirements for every host. One module creates all hosts; the runs below call it with the arguments of the
# root module.

mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  name                                = "sse-soak-stack"
  host_count                          = 2
  host_names                          = ["a", "b"]
  region                              = "eu-central-1"
  network                             = { subnet_id = "subnet-0123456789abcdef0", public = true }
  bucket                              = "sse-soak-mock"
  objects                             = { "images/00/k3s" = "00", "images/11/k6.tar.gz" = "11" }
  security_group_id                   = "sg-0123456789abcdef0"
  guard                               = { schedule_group = "sse-soak", terminator_arn = "arn:aws:iam::123456789012:role/end", end_parameter = "/sse-soak/end", end_parameter_arn = "arn:aws:ssm:eu-central-1:123456789012:parameter/sse-soak/end" }
  instance_type                       = "c5.large"
  disk_gib                            = 30
  connection_tracking_timeout_seconds = null
  ttl_minutes                         = 180
  status_parameters                   = ["/sse-soak/a", "/sse-soak/b"]
  statements                          = []
  script                              = "#!/bin/bash\n. /opt/soak/begin.sh\n"
  settings                            = { GREETING = "a b" }
}

run "host" {
  command = plan

  module {
    source = "./modules/host"
  }

  assert {
    condition     = alltrue([for i in aws_instance.this : i.instance_initiated_shutdown_behavior == "terminate"])
    error_message = "A host that shuts down must be terminated."
  }

  assert {
    condition     = alltrue([for i in aws_instance.this : i.metadata_options[0].http_tokens == "required" && i.metadata_options[0].http_put_response_hop_limit == 1])
    error_message = "The metadata service must require a token and answer only the host."
  }

  assert {
    condition     = aws_launch_template.this.metadata_options[0].http_tokens == "required"
    error_message = "The metadata service must require a token."
  }

  assert {
    condition     = alltrue([for i in aws_instance.this : i.root_block_device[0].encrypted && i.root_block_device[0].volume_type == "gp3" && i.root_block_device[0].volume_size == 30])
    error_message = "The disk must be encrypted, of type gp3, and of the size in disk_gib."
  }

  assert {
    condition     = alltrue([for i in aws_instance.this : i.user_data_replace_on_change])
    error_message = "A changed script must replace the host, because it runs only on the first boot."
  }

  assert {
    condition     = alltrue([for i in aws_instance.this : i.volume_tags["Run"] == "sse-soak"])
    error_message = "Volumes must have the tag Run; default_tags do not apply to them."
  }

  assert {
    condition     = aws_instance.this[*].tags["Host"] == ["a", "b"]
    error_message = "Hosts must have the tag Host, by which the stack's Prometheus finds and names them."
  }

  assert {
    condition     = length(aws_launch_template.this.network_interfaces) == 1 && aws_launch_template.this.network_interfaces[0].subnet_id == var.network.subnet_id && length(aws_launch_template.this.network_interfaces[0].connection_tracking_specification) == 0
    error_message = "The launch template must have the subnet and the security group, and no timeout by default."
  }

  assert {
    condition     = alltrue([for s in aws_scheduler_schedule.end : s.group_name == "sse-soak" && s.target[0].arn == "arn:aws:scheduler:::aws-sdk:ec2:terminateInstances" && s.schedule_expression_timezone == "UTC"]) && length(aws_scheduler_schedule.end) == 2
    error_message = "Each host must have a schedule that terminates it from outside."
  }

  assert {
    condition     = alltrue([for d in local.user_data : length(d) < 16384 && startswith(d, "#cloud-config\n")])
    error_message = "User data must be a cloud-config of less than 16 KiB."
  }

  assert {
    condition     = alltrue([for i, d in local.user_data : length(yamldecode(d).runcmd) == 1 && strcontains(d, "TTL_MINUTES='180'") && strcontains(d, "GREETING='a b'") && strcontains(d, "00 images/00/k3s") && strcontains(d, "11 images/11/k6.tar.gz") && strcontains(d, "STATUS_PARAMETER='${var.status_parameters[i]}'")])
    error_message = "User data must run one script and contain the lifetime, the files with their SHA-256, and the status parameter."
  }

  assert {
    condition     = strcontains(local.user_data[0], "OnCalendar=") && strcontains(local.user_data[0], "Persistent=true")
    error_message = "The timer on the host must survive a reboot."
  }
}

run "the_role_of_a_host" {
  command = apply

  module {
    source = "./modules/host"
  }

  assert {
    condition     = alltrue([for s in jsondecode(aws_iam_role_policy.this.policy).Statement : alltrue([for a in s.Action : !endswith(a, "*") && (!startswith(a, "ssm:Get") || s.Resource == [var.guard.end_parameter_arn])])])
    error_message = "A host may open a session and read its end; without a statement of its module, it must not read other parameters."
  }

  assert {
    condition     = alltrue([for s in aws_scheduler_schedule.end : can(regex("^at\\([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\\)$", s.schedule_expression))])
    error_message = "The schedule must have one point in time."
  }

  assert {
    condition     = alltrue([for e in terraform_data.end : timecmp("${e.output}Z", timeadd(plantimestamp(), "194m")) > 0 && timecmp("${e.output}Z", timeadd(plantimestamp(), "196m")) < 0])
    error_message = "The schedule must be 15 minutes after the timer on the host."
  }

  assert {
    condition     = alltrue([for i, s in aws_scheduler_schedule.end : jsondecode(s.target[0].input).InstanceIds == [aws_instance.this[i].id]])
    error_message = "A schedule must name only its own host, because one missing id makes the whole request fail."
  }
}

run "an_existing_subnet_a_boundary_a_timeout_and_graviton" {
  command = plan

  module {
    source = "./modules/host"
  }

  variables {
    network                             = { subnet_id = "subnet-0123456789abcdef0", public = false }
    guard                               = merge(var.guard, { permissions_boundary_arn = "arn:aws:iam::123456789012:policy/boundary" })
    connection_tracking_timeout_seconds = 86400
    architecture                        = "arm64"
  }

  assert {
    condition     = aws_launch_template.this.network_interfaces[0].associate_public_ip_address == null && aws_iam_role.this.permissions_boundary == "arn:aws:iam::123456789012:policy/boundary"
    error_message = "The existing subnet must decide on public addresses, and the role must have the permissions boundary."
  }

  assert {
    condition     = aws_launch_template.this.network_interfaces[0].connection_tracking_specification[0].tcp_established_timeout == 86400
    error_message = "The network interface must have the timeout."
  }

  assert {
    condition     = strcontains(data.aws_ssm_parameter.ubuntu.name, "/24.04/stable/current/arm64/")
    error_message = "A Graviton host must have Ubuntu for arm64."
  }
}

run "metadata_hops_and_settings_with_a_quote" {
  command = plan

  module {
    source = "./modules/host"
  }

  variables {
    metadata_hops = 3
    settings      = { GREETING = "'; poweroff; '" }
  }

  expect_failures = [var.metadata_hops, var.settings]
}

run "user_data_that_is_too_long" {
  command = plan

  module {
    source = "./modules/host"
  }

  variables {
    script = join("", [for i in range(1000) : "echo a line of the script\n"])
  }

  expect_failures = [aws_instance.this]
}
