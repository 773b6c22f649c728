output "deployment" {
  description = "Settings and ids of the deployment that soak-aws uses."
  value = {
    settings = local.settings

    backend_url = "http://${module.stack.private_ip}" # the address for runners, without an idle timeout of AWS
    control_url = "http://${module.stack.private_ip}:7070"
    public_url  = "http://${module.stack.public_ip}" # the address for laptops, if laptop_cidrs allows them

    bucket               = module.storage.bucket
    secrets_parameter    = module.stack.secrets_parameter              # the stack's token and passwords, as lines of .env
    kubeconfig_parameter = one(module.runners[*].kubeconfig_parameter) # null without runners
    end_parameter        = module.guard.end_parameter                  # a later end of the hosts, if `soak-aws extend` has stored one

    # Hosts by the parameter in which each one stores the state of its setup, and by name.
    status_parameters = merge({ (module.stack.status_parameter) = module.stack.instance_id }, module.runners[*].status_parameters...)
    instances         = merge({ stack = module.stack.instance_id }, module.runners[*].instances...)
  }
}
