output "kubeconfig_parameter" {
  description = "SecureString with the kubeconfig of the cluster."
  value       = aws_ssm_parameter.this["kubeconfig"].name
}

output "status_parameters" {
  description = "Hosts by the parameter in which each one stores the state of its setup."
  value       = { for i, p in aws_ssm_parameter.status : p.name => local.instances["runner-${i + 1}"] }
}

output "instances" {
  description = "The hosts by name."
  value       = local.instances
}
