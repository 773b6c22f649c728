package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"math/big"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov5"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// idPrefixes maps resource types to the prefixes of their ids in AWS.
var idPrefixes = map[string]string{
	"aws_instance": "i", "aws_internet_gateway": "igw", "aws_launch_template": "lt", "aws_route_table": "rtb",
	"aws_security_group": "sg", "aws_subnet": "subnet", "aws_vpc": "vpc",
	"aws_vpc_security_group_egress_rule": "sgr", "aws_vpc_security_group_ingress_rule": "sgr",
}

// invent returns a value for an attribute that AWS would compute, in the format that other resources require. The value
// depends only on the arguments.
func invent(typeName, name string, kind tftypes.Type, seed string) tftypes.Value {
	switch k := kind.(type) {
	case tftypes.List:
		if name == "names" || name == "locations" { // availability zones of a region or of an instance type
			zone := func(letter string) tftypes.Value { return tftypes.NewValue(tftypes.String, "us-east-1"+letter) }
			return tftypes.NewValue(k, []tftypes.Value{zone("a"), zone("b")})
		}
		object, ok := k.ElementType.(tftypes.Object)
		if !ok {
			return tftypes.NewValue(k, []tftypes.Value{})
		}
		fields := map[string]tftypes.Value{}
		for field, fieldType := range object.AttributeTypes {
			fields[field] = invent(typeName, field, fieldType, seed)
		}
		return tftypes.NewValue(k, []tftypes.Value{tftypes.NewValue(object, fields)})
	case tftypes.Set:
		return tftypes.NewValue(k, []tftypes.Value{})
	case tftypes.Map:
		return tftypes.NewValue(k, map[string]tftypes.Value{})
	}
	switch {
	case kind.Is(tftypes.String):
		return tftypes.NewValue(kind, inventText(typeName, name, seed))
	case kind.Is(tftypes.Bool):
		return tftypes.NewValue(kind, false)
	case kind.Is(tftypes.Number):
		return tftypes.NewValue(kind, big.NewFloat(1))
	}
	return tftypes.NewValue(kind, nil)
}

func inventText(typeName, name, seed string) string {
	hash := sha256.Sum256([]byte(typeName + name + seed))
	digits := hex.EncodeToString(hash[:])[:17]
	switch {
	case name == "id" && idPrefixes[typeName] != "":
		return idPrefixes[typeName] + "-" + digits
	case strings.HasSuffix(name, "arn"):
		return "arn:aws:fake:us-east-1:123456789012:" + strings.TrimPrefix(typeName, "aws_") + "/" + digits
	case strings.Contains(name, "public_ip"):
		return "203.0.113.10"
	case strings.Contains(name, "private_ip"):
		return "10.0.0.10"
	case typeName == "data.aws_ssm_parameter": // the id of an Ubuntu image
		return "ami-" + digits
	}
	return name + "-" + digits
}

// UpgradeResourceState returns the state without attributes that the schema does not have.
func (s *server) UpgradeResourceState(_ context.Context, r *tfprotov5.UpgradeResourceStateRequest) (*tfprotov5.UpgradeResourceStateResponse, error) {
	kind := s.schemas.Resources[r.TypeName].proto().ValueType()
	state, err := r.RawState.UnmarshalWithOpts(kind, tfprotov5.UnmarshalOpts{ValueFromJSONOpts: tftypes.ValueFromJSONOpts{IgnoreUndefinedAttributes: true}})
	if err != nil {
		return nil, err
	}
	value, err := tfprotov5.NewDynamicValue(kind, state)
	return &tfprotov5.UpgradeResourceStateResponse{UpgradedState: &value}, err
}

// ReadResource returns a resource unchanged.
func (s *server) ReadResource(_ context.Context, r *tfprotov5.ReadResourceRequest) (*tfprotov5.ReadResourceResponse, error) {
	return &tfprotov5.ReadResourceResponse{NewState: r.CurrentState}, nil
}

// PlanResourceChange marks the values that AWS computes for a new resource as unknown. It computes tags_all and region.
func (s *server) PlanResourceChange(_ context.Context, r *tfprotov5.PlanResourceChangeRequest) (*tfprotov5.PlanResourceChangeResponse, error) {
	schema := s.schemas.Resources[r.TypeName]
	kind := schema.proto().ValueType()
	planned, err := r.ProposedNewState.Unmarshal(kind)
	if err != nil || planned.IsNull() { // null: the resource is destroyed
		return &tfprotov5.PlanResourceChangeResponse{PlannedState: r.ProposedNewState}, err
	}
	prior, err := r.PriorState.Unmarshal(kind)
	if err != nil {
		return nil, err
	}
	planned, err = schema.Block.fill(planned, func(_ string, a attribute, v tftypes.Value) tftypes.Value {
		if prior.IsNull() && a.Computed && v.IsNull() {
			return tftypes.NewValue(v.Type(), tftypes.UnknownValue)
		}
		return v
	})
	if err != nil {
		return nil, err
	}
	fields := map[string]tftypes.Value{}
	if err := planned.As(&fields); err != nil {
		return nil, err
	}
	if _, ok := fields["tags_all"]; ok {
		if fields["tags_all"], err = s.allTags(fields["tags"]); err != nil {
			return nil, err
		}
	}
	if region, ok := fields["region"]; ok && !region.IsKnown() {
		fields["region"] = tftypes.NewValue(tftypes.String, s.region)
	}
	state, err := tfprotov5.NewDynamicValue(kind, tftypes.NewValue(kind, fields))
	return &tfprotov5.PlanResourceChangeResponse{PlannedState: &state}, err
}

// allTags returns default_tags merged with the tags of a resource, which take precedence. If the tags of the resource
// are unknown, so is the result.
func (s *server) allTags(tags tftypes.Value) (tftypes.Value, error) {
	kind := tftypes.Map{ElementType: tftypes.String}
	if !tags.IsKnown() {
		return tftypes.NewValue(kind, tftypes.UnknownValue), nil
	}
	all, resourceTags := map[string]tftypes.Value{}, map[string]tftypes.Value{}
	if err := tags.As(&resourceTags); err != nil {
		return tags, err
	}
	maps.Copy(all, s.tags)
	maps.Copy(all, resourceTags)
	return tftypes.NewValue(kind, all), nil
}

// ApplyResourceChange invents the values that are still unknown.
func (s *server) ApplyResourceChange(_ context.Context, r *tfprotov5.ApplyResourceChangeRequest) (*tfprotov5.ApplyResourceChangeResponse, error) {
	schema := s.schemas.Resources[r.TypeName]
	kind := schema.proto().ValueType()
	planned, err := r.PlannedState.Unmarshal(kind)
	if err != nil || planned.IsNull() {
		return &tfprotov5.ApplyResourceChangeResponse{NewState: r.PlannedState}, err
	}
	seed := planned.String()
	if r.TypeName == "aws_instance" {
		seed += time.Now().String() // AWS does not reuse ids
	}
	value, err := schema.Block.fill(planned, func(name string, _ attribute, v tftypes.Value) tftypes.Value {
		if v.IsFullyKnown() {
			return v
		}
		return invent(r.TypeName, name, v.Type(), seed)
	})
	if err != nil {
		return nil, err
	}
	state, err := tfprotov5.NewDynamicValue(kind, value)
	return &tfprotov5.ApplyResourceChangeResponse{NewState: &state}, err
}

// ReadDataSource invents the values of a data source.
func (s *server) ReadDataSource(_ context.Context, r *tfprotov5.ReadDataSourceRequest) (*tfprotov5.ReadDataSourceResponse, error) {
	schema := s.schemas.Data[r.TypeName]
	kind := schema.proto().ValueType()
	config, err := r.Config.Unmarshal(kind)
	if err != nil {
		return nil, err
	}
	read, err := schema.Block.fill(config, func(name string, a attribute, v tftypes.Value) tftypes.Value {
		if a.Computed && v.IsNull() {
			return invent("data."+r.TypeName, name, v.Type(), "")
		}
		return v
	})
	if err != nil {
		return nil, err
	}
	state, err := tfprotov5.NewDynamicValue(kind, read)
	return &tfprotov5.ReadDataSourceResponse{State: &state}, err
}
