output "backend_url" {
  description = "The service as the runners reach it: by its private address, so that no idle timer of AWS's lies between."
  value       = "http://${module.stack.private_ip}"
}

output "control_url" {
  description = "The reference target of the control group on the stack's host, as the runners reach it."
  value       = "http://${module.stack.private_ip}:7070"
}

output "public_url" {
  description = "The stack as laptops reach it, where laptop_cidrs lets them in."
  value       = "http://${module.stack.public_ip}"
}

output "bucket" {
  description = "The bucket for shards and reports."
  value       = module.storage.bucket
}

output "secrets_parameter" {
  description = "SecureString with the stack's token and passwords, as lines of .env."
  value       = module.stack.secrets_parameter
}

output "kubeconfig_parameter" {
  description = "SecureString with the kubeconfig of the runners' cluster; null without runners."
  value       = one(module.runners[*].kubeconfig_parameter)
}

output "status_parameters" {
  description = "Hosts by the parameter in which each one stores the state of its setup: pending, ready or failed, and the host's id."
  value       = merge({ (module.stack.status_parameter) = module.stack.instance_id }, module.runners[*].status_parameters...)
}

output "instances" {
  description = "Hosts by name."
  value       = merge({ stack = module.stack.instance_id }, module.runners[*].instances...)
}

output "ssm_command" {
  description = "Opens a shell on the stack's host. There is no SSH."
  value       = "aws ssm start-session --region ${var.region} --target ${module.stack.instance_id}"
}

output "region" {
  description = "Where all of this is."
  value       = var.region
}

output "zone" {
  description = "The availability zone that all hosts are in."
  value       = module.network.zone
}

output "owner" {
  description = "Who made this deployment."
  value       = var.owner
}

output "name" {
  description = "The value of the tag Run of all of this."
  value       = var.name
}

output "runner_node_count" {
  description = "Hosts for runners."
  value       = var.runner_node_count
}

output "runner_architecture" {
  description = "Architecture of the runners' hosts, which their image has to have."
  value       = local.runner_architecture
}

output "connections" {
  description = "Streams that the stack is set up for."
  value       = var.connections
}

output "noop_interval_seconds" {
  description = "Seconds between two noops of one stream."
  value       = var.noop_interval_seconds
}

output "ttl_minutes" {
  description = "Minutes after which every host ends itself."
  value       = var.ttl_minutes
}

output "end_parameter" {
  description = "SecureString with a later end of the hosts, once `bin/soak-aws extend` has stored one."
  value       = module.guard.end_parameter
}
