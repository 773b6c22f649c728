// Command cut creates schema.json, the part of the AWS provider's schema that infra/terraform uses:
//
//	terraform -chdir=infra/terraform init && terraform -chdir=infra/terraform providers schema -json >schema.json
//	cd test/offline/terraform && go run ./cut ../../../infra/terraform <../../../schema.json >schema.json
package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"log"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const source = "registry.terraform.io/hashicorp/aws"

var typeUse = regexp.MustCompile(`(?m)^\s*(?:mock_)?(resource|data) "(aws_\w+)"`)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: cut FOLDER_OF_TERRAFORM_CODE <schema >schema.json")
	}
	var all struct {
		Providers map[string]struct {
			Provider  any            `json:"provider"`
			Resources map[string]any `json:"resource_schemas"`
			Data      map[string]any `json:"data_source_schemas"`
		} `json:"provider_schemas"`
	}
	if err := json.NewDecoder(os.Stdin).Decode(&all); err != nil {
		log.Fatalf("read the output of `terraform providers schema -json`: %v", err)
	}
	aws, ok := all.Providers[source]
	if !ok {
		log.Fatalf("standard input must contain the schema of %s", source)
	}
	names, err := types(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	slim(aws.Provider)
	removeEndpoints(aws.Provider)
	fmt.Printf("{\"provider\":%s,\n\"resource_schemas\":{\n%s\n},\n\"data_source_schemas\":{\n%s\n}}\n",
		text(aws.Provider), lines(aws.Resources, names["resource"]), lines(aws.Data, names["data"]))
}

// types returns the provider's types in the Terraform code of a folder, sorted, under the keys "resource" and "data".
func types(folder string) (map[string][]string, error) {
	found := map[string]map[string]bool{"resource": {}, "data": {}}
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".tf") && !strings.HasSuffix(path, ".hcl") {
			return err
		}
		code, err := os.ReadFile(path)
		for _, match := range typeUse.FindAllStringSubmatch(string(code), -1) {
			found[match[1]][match[2]] = true
		}
		return err
	})
	names := map[string][]string{}
	for kind, set := range found {
		names[kind] = slices.Sorted(maps.Keys(set))
	}
	return names, err
}

// lines returns the schemas of the named types, one per line, so that a diff shows the changed types.
func lines(schemas map[string]any, names []string) string {
	var out []string
	for _, name := range names {
		schema, ok := schemas[name]
		if !ok {
			log.Fatalf("the schema on standard input has no %s", name)
		}
		slim(schema)
		out = append(out, text(name)+":"+text(schema))
	}
	return strings.Join(out, ",\n")
}

// properties are the schema properties that the stand-in reads.
var properties = []string{"type", "required", "optional", "computed", "nesting_mode", "min_items", "max_items"}

// slim removes from a schema all properties that are false or that the stand-in does not read, mainly descriptions.
func slim(value any) {
	fields, _ := value.(map[string]any)
	for name, field := range fields {
		switch field.(type) {
		case map[string]any:
			slim(field)
		case []any: // a type
		default:
			if field == false || !slices.Contains(properties, name) {
				delete(fields, name)
			}
		}
	}
}

// removeEndpoints removes the block "endpoints". Its attributes, the addresses of hundreds of services, are unused.
func removeEndpoints(provider any) {
	if p, ok := provider.(map[string]any); ok {
		if block, ok := p["block"].(map[string]any); ok {
			if blocks, ok := block["block_types"].(map[string]any); ok {
				delete(blocks, "endpoints")
			}
		}
	}
}

func text(value any) string {
	b, err := json.Marshal(value)
	if err != nil {
		log.Fatal(err)
	}
	return string(b)
}
