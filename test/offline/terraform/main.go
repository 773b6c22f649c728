// Command terraform is a stand-in for terraform-provider-aws. It serves the part of the schema of version 6.66.0
// that infra/terraform uses, so that terraform init, validate, plan, apply, destroy and test need no registry and no
// AWS account there. It sends no requests. It invents the values that AWS would compute, and terraform stores them in
// the state file.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"regexp"

	"github.com/hashicorp/terraform-plugin-go/tfprotov5"
	"github.com/hashicorp/terraform-plugin-go/tfprotov5/tf5server"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

const address = "registry.terraform.io/hashicorp/aws"

func main() {
	s, err := newServer()
	if err != nil {
		log.Fatal(err)
	}
	if err := tf5server.Serve(address, func() tfprotov5.ProviderServer { return s }); err != nil {
		log.Fatal(err)
	}
}

// A server implements the provider's side of the protocol. It lacks the methods for imports, moves, functions and
// ephemeral resources, which infra/terraform does not use. A call of a missing method crashes the stand-in.
type server struct {
	tfprotov5.ProviderServer
	schemas schemas
	region  string
	tags    map[string]tftypes.Value // default_tags
}

func newServer() (*server, error) {
	s := &server{}
	if err := json.Unmarshal(schemaText, &s.schemas); err != nil {
		return nil, fmt.Errorf("read schema.json: %w", err)
	}
	return s, nil
}

func (s *server) GetProviderSchema(context.Context, *tfprotov5.GetProviderSchemaRequest) (*tfprotov5.GetProviderSchemaResponse, error) {
	return &tfprotov5.GetProviderSchemaResponse{
		Provider: s.schemas.Provider.proto(), ResourceSchemas: protos(s.schemas.Resources), DataSourceSchemas: protos(s.schemas.Data),
	}, nil
}

func (s *server) GetResourceIdentitySchemas(context.Context, *tfprotov5.GetResourceIdentitySchemasRequest) (*tfprotov5.GetResourceIdentitySchemasResponse, error) {
	return &tfprotov5.GetResourceIdentitySchemasResponse{}, nil
}

func (s *server) PrepareProviderConfig(_ context.Context, r *tfprotov5.PrepareProviderConfigRequest) (*tfprotov5.PrepareProviderConfigResponse, error) {
	return &tfprotov5.PrepareProviderConfigResponse{PreparedConfig: r.Config}, nil
}

// ConfigureProvider stores the region, by default us-east-1, and the default tags.
func (s *server) ConfigureProvider(_ context.Context, r *tfprotov5.ConfigureProviderRequest) (*tfprotov5.ConfigureProviderResponse, error) {
	config, err := r.Config.Unmarshal(s.schemas.Provider.proto().ValueType())
	if err != nil {
		return nil, err
	}
	var fields map[string]tftypes.Value
	if err := config.As(&fields); err != nil {
		return nil, err
	}
	s.region = "us-east-1"
	if region := fields["region"]; region.IsKnown() && !region.IsNull() {
		if err := region.As(&s.region); err != nil {
			return nil, err
		}
	}
	var blocks []tftypes.Value
	if err := fields["default_tags"].As(&blocks); err != nil {
		return nil, err
	}
	for _, b := range blocks {
		var values map[string]tftypes.Value
		if err := b.As(&values); err != nil {
			return nil, err
		}
		if err := values["tags"].As(&s.tags); err != nil {
			return nil, err
		}
	}
	return &tfprotov5.ConfigureProviderResponse{}, nil
}

func (s *server) StopProvider(context.Context, *tfprotov5.StopProviderRequest) (*tfprotov5.StopProviderResponse, error) {
	return &tfprotov5.StopProviderResponse{}, nil
}

var instanceType = regexp.MustCompile(`^[a-z][a-z0-9-]*\.(nano|micro|small|medium|large|\d*xlarge|metal(-\d+xl)?)$`)

// ValidateResourceTypeConfig rejects values that terraform itself accepts: values for read-only attributes, and unknown
// instance types.
func (s *server) ValidateResourceTypeConfig(_ context.Context, r *tfprotov5.ValidateResourceTypeConfigRequest) (*tfprotov5.ValidateResourceTypeConfigResponse, error) {
	out := &tfprotov5.ValidateResourceTypeConfigResponse{}
	reject := func(summary string) {
		out.Diagnostics = append(out.Diagnostics, &tfprotov5.Diagnostic{Severity: tfprotov5.DiagnosticSeverityError, Summary: r.TypeName + ": " + summary})
	}
	schema := s.schemas.Resources[r.TypeName]
	config, err := r.Config.Unmarshal(schema.proto().ValueType())
	if err != nil {
		return nil, err
	}
	_, err = schema.Block.fill(config, func(name string, a attribute, v tftypes.Value) tftypes.Value {
		var text string
		switch {
		case v.IsNull() || !v.IsKnown():
		case a.Computed && !a.Optional:
			reject(name + " is read-only")
		case name == "instance_type" && v.As(&text) == nil && !instanceType.MatchString(text):
			reject(text + " is not an instance type")
		}
		return v
	})
	return out, err
}

func (s *server) ValidateDataSourceConfig(context.Context, *tfprotov5.ValidateDataSourceConfigRequest) (*tfprotov5.ValidateDataSourceConfigResponse, error) {
	return &tfprotov5.ValidateDataSourceConfigResponse{}, nil
}
