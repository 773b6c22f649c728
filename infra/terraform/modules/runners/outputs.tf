output "kubeconfig_parameter" {
  description = "SecureString with the kubeconfig of the cluster."
  value       = aws_ssm_parameter.this["kubeconfig"].name
}

output "status_parameters" {
  description = "Parameters that say how far the setup of each host is."
  value       = aws_ssm_parameter.status[*].name
}

output "instances" {
  description = "The hosts by name."
  value       = merge(module.server.instances, module.agents[*].instances...)
}
