# Responses of AWS, in the format that the real provider accepts as input of other resources.

mock_data "aws_availability_zones" {
  defaults = { names = ["eu-central-1a", "eu-central-1b"] }
}

mock_data "aws_ec2_instance_type_offerings" {
  defaults = { locations = ["eu-central-1b", "eu-central-1a"] }
}

mock_data "aws_partition" {
  defaults = { partition = "aws" }
}

mock_data "aws_caller_identity" {
  defaults = { account_id = "123456789012" }
}

mock_data "aws_default_tags" {
  defaults = { tags = { Project = "sse-soak", Run = "sse-soak", ManagedBy = "terraform" } }
}

mock_data "aws_ssm_parameter" {
  defaults = { insecure_value = "ami-0123456789abcdef0" }
}

mock_resource "aws_iam_role" {
  defaults = { arn = "arn:aws:iam::123456789012:role/mock" }
}

mock_resource "aws_ssm_parameter" {
  defaults = { arn = "arn:aws:ssm:eu-central-1:123456789012:parameter/mock" }
}

mock_resource "aws_s3_bucket" {
  defaults = {
    id     = "sse-soak-mock"
    bucket = "sse-soak-mock"
    arn    = "arn:aws:s3:::sse-soak-mock"
  }
}

mock_resource "aws_instance" {
  defaults = {
    id         = "i-0123456789abcdef0"
    private_ip = "10.20.0.10"
    public_ip  = "203.0.113.20"
  }
}

mock_resource "aws_launch_template" {
  defaults = {
    id             = "lt-0123456789abcdef0"
    latest_version = 1
  }
}

mock_resource "aws_security_group" {
  defaults = { id = "sg-0123456789abcdef0" }
}

mock_resource "aws_scheduler_schedule_group" {
  defaults = { name = "sse-soak" }
}
