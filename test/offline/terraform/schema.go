package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-go/tfprotov5"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// schemaText is the part of the schema of provider version 6.66.0 (MPL-2.0) that infra/terraform uses. ./cut creates
// schema.json from the output of `terraform providers schema -json`.
//
//go:embed schema.json
var schemaText []byte

type schemas struct {
	Provider  schema            `json:"provider"`
	Resources map[string]schema `json:"resource_schemas"`
	Data      map[string]schema `json:"data_source_schemas"`
}

// A schema is the schema of the provider, of a resource or of a data source.
type schema struct{ Block block }

// A block is the schema of an HCL block, with attributes and nested blocks by name.
type block struct {
	Attributes map[string]attribute
	Blocks     map[string]nestedBlock `json:"block_types"`
}

// An attribute is the schema of one attribute. Type is in the JSON form of Terraform types.
type attribute struct {
	Type                         json.RawMessage
	Required, Optional, Computed bool
}

// A nestedBlock is a block inside another one. MaxItems is 0 if there is no limit.
type nestedBlock struct {
	Block    block
	Nesting  string `json:"nesting_mode"`
	MinItems int64  `json:"min_items"`
	MaxItems int64  `json:"max_items"`
}

// nestings maps the nesting modes of schema.json to the modes of the protocol.
var nestings = map[string]tfprotov5.SchemaNestedBlockNestingMode{
	"list":   tfprotov5.SchemaNestedBlockNestingModeList,
	"set":    tfprotov5.SchemaNestedBlockNestingModeSet,
	"single": tfprotov5.SchemaNestedBlockNestingModeSingle,
}

func (s schema) proto() *tfprotov5.Schema { return &tfprotov5.Schema{Block: s.Block.proto()} }

func protos(all map[string]schema) map[string]*tfprotov5.Schema {
	out := map[string]*tfprotov5.Schema{}
	for name, s := range all {
		out[name] = s.proto()
	}
	return out
}

func (b block) proto() *tfprotov5.SchemaBlock {
	out := &tfprotov5.SchemaBlock{}
	for _, name := range slices.Sorted(maps.Keys(b.Attributes)) {
		a := b.Attributes[name]
		//lint:ignore SA1019 schema.json has the JSON form of types
		kind, err := tftypes.ParseJSONType(a.Type)
		if err != nil {
			panic(fmt.Sprintf("schema.json: type of %s: %v", name, err))
		}
		out.Attributes = append(out.Attributes, &tfprotov5.SchemaAttribute{
			Name: name, Type: kind, Required: a.Required, Optional: a.Optional, Computed: a.Computed,
		})
	}
	for _, name := range slices.Sorted(maps.Keys(b.Blocks)) {
		n := b.Blocks[name]
		out.BlockTypes = append(out.BlockTypes, &tfprotov5.SchemaNestedBlock{
			TypeName: name, Block: n.Block.proto(), Nesting: nestings[n.Nesting], MinItems: n.MinItems, MaxItems: n.MaxItems,
		})
	}
	return out
}

// fill returns the value of a block after f has replaced each attribute, including attributes of nested blocks.
func (b block) fill(v tftypes.Value, f func(string, attribute, tftypes.Value) tftypes.Value) (tftypes.Value, error) {
	if v.IsNull() || !v.IsKnown() {
		return v, nil
	}
	fields := map[string]tftypes.Value{}
	if err := v.As(&fields); err != nil {
		return v, err
	}
	for name, a := range b.Attributes {
		fields[name] = f(name, a, fields[name])
	}
	for name, nested := range b.Blocks {
		field, err := nested.fill(fields[name], f)
		if err != nil {
			return v, err
		}
		fields[name] = field
	}
	return tftypes.NewValue(v.Type(), fields), nil
}

func (n nestedBlock) fill(v tftypes.Value, f func(string, attribute, tftypes.Value) tftypes.Value) (tftypes.Value, error) {
	if n.Nesting == "single" || v.IsNull() || !v.IsKnown() {
		return n.Block.fill(v, f)
	}
	var items []tftypes.Value
	if err := v.As(&items); err != nil {
		return v, err
	}
	for i := range items {
		item, err := n.Block.fill(items[i], f)
		if err != nil {
			return v, err
		}
		items[i] = item
	}
	return tftypes.NewValue(v.Type(), items), nil
}
