# One host with the stack, hosts for runners in the same subnet, and a bucket for their files. Three mechanisms
# limit the costs: a timer on each host, a schedule outside of it, and a budget.

locals {
  # The letter after the generation is the manufacturer of the processor; a1 predates this scheme.
  runner_architecture = can(regex("^([a-z]+[0-9]+g|a1[.])", var.runner_instance_type)) ? "arm64" : "amd64"

  # The budget, the cleanup and the allocation of costs use Run.
  tags = merge(var.tags, { Project = "sse-soak", Run = var.name, ManagedBy = "terraform" })

  # Values that soak-aws needs before any resource is created.
  settings = {
    name                  = var.name
    region                = var.region
    owner                 = var.owner
    connections           = var.connections
    noop_interval_seconds = var.noop_interval_seconds
    ttl_minutes           = var.ttl_minutes
    retention_days        = var.retention_days
    subnet_id             = var.subnet_id
    tags                  = local.tags
    disk_gib              = var.stack_disk_gib + var.runner_node_count * var.runner_disk_gib
    runner_architecture   = local.runner_architecture
    architectures         = merge({ (var.runner_instance_type) = local.runner_architecture }, { (var.stack_instance_type) = "amd64" })
    hosts = { for type in local.instance_types : type =>
      (type == var.stack_instance_type ? 1 : 0) + (type == var.runner_instance_type ? var.runner_node_count : 0)
    }
  }

  instance_types = distinct(concat([var.stack_instance_type], var.runner_node_count > 0 ? [var.runner_instance_type] : []))
}

module "network" {
  source = "./modules/network"

  name           = var.name
  region         = var.region
  zone           = var.zone
  subnet_id      = var.subnet_id
  instance_types = local.instance_types
}

module "storage" {
  source = "./modules/storage"

  name           = var.name
  retention_days = var.retention_days
  stack_dir      = var.stack_dir
  runner_dir     = var.runner_node_count > 0 ? var.runner_dir : null
}

module "guard" {
  source = "./modules/guard"

  name         = var.name
  region       = var.region
  budget_usd   = var.budget_usd
  alert_emails = var.alert_emails

  permissions_boundary_arn = var.permissions_boundary_arn
}

module "stack" {
  source = "./modules/stack"

  name                                = var.name
  region                              = var.region
  network                             = module.network
  guard                               = module.guard
  laptop_cidrs                        = var.laptop_cidrs
  instance_type                       = var.stack_instance_type
  disk_gib                            = var.stack_disk_gib
  connection_tracking_timeout_seconds = var.connection_tracking_timeout_seconds
  ttl_minutes                         = var.ttl_minutes
  bucket                              = module.storage.bucket
  files                               = module.storage.stack_files
  connections                         = var.connections
  noop_interval_seconds               = var.noop_interval_seconds
  alerts_topic_arn                    = var.alerts_topic_arn
}

module "runners" {
  source = "./modules/runners"
  count  = var.runner_node_count > 0 ? 1 : 0

  name                                = var.name
  region                              = var.region
  network                             = module.network
  guard                               = module.guard
  stack_security_group_id             = module.stack.security_group_id
  node_count                          = var.runner_node_count
  instance_type                       = var.runner_instance_type
  architecture                        = local.runner_architecture
  disk_gib                            = var.runner_disk_gib
  connection_tracking_timeout_seconds = var.connection_tracking_timeout_seconds
  ttl_minutes                         = var.ttl_minutes
  bucket                              = module.storage.bucket
  bucket_arn                          = module.storage.bucket_arn
  files                               = module.storage.runner_files
}
