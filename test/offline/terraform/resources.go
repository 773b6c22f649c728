package main

import (
	"context"
	"maps"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov5"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

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
