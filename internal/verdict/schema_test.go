package verdict

import (
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the JSON Schema")

const schemaFile = "../../docs/reference/verdict.schema.json"

// The schema follows from the Go types and their comments, so that neither can change without the other.
func TestSchemaFileMatchesTheTypes(t *testing.T) {
	t.Parallel()
	text, err := json.MarshalIndent(schemaOfVerdict(t), "", "  ")
	require.NoError(t, err)
	text = append(text, '\n')
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(schemaFile), 0o755))
		require.NoError(t, os.WriteFile(schemaFile, text, 0o644)) // #nosec G306 -- a file of the repository
	}
	want, err := os.ReadFile(schemaFile)
	require.NoError(t, err)
	require.Equal(t, string(want), string(text), "write the file with go test ./internal/verdict -run Schema -update")
}

// A schemaWriter derives a JSON Schema from Go types.
type schemaWriter struct {
	definitions map[string]any
	comments    map[string]string // by field: "verdict.Verdict.Schema"
}

func schemaOfVerdict(t *testing.T) map[string]any {
	t.Helper()
	w := schemaWriter{definitions: map[string]any{}, comments: map[string]string{}}
	for _, folder := range []string{".", "../shard", "../ledger", "../plan", "../host/resources", "../host/machine"} {
		w.readComments(t, folder)
	}
	root := w.object(reflect.TypeFor[Verdict]())
	properties := root["properties"].(map[string]any)
	properties["schema"] = map[string]any{"const": Schema, "description": "version of the format; readers reject any other"}
	properties["verdict"] = map[string]any{"enum": []Outcome{Pass, Fail, Invalid}}
	check := w.definitions["verdict.Check"].(map[string]any)["properties"].(map[string]any)
	check["severity"] = map[string]any{"enum": []Severity{SeverityFail, SeverityInconclusive, SeverityWarning}, "description": "the effect of a check that is not met"}
	properties["plan"] = map[string]any{"anyOf": []any{properties["plan"], w.schema(reflect.TypeFor[declaredPlan]())}}
	counts := []string{"connections", "messages", "evidence", "lateness_ms", "connect_ms", "server"}
	root["required"] = slices.DeleteFunc(root["required"].([]string), func(name string) bool { return slices.Contains(counts, name) })
	root["if"] = map[string]any{"required": []string{"suite"}}
	root["then"] = true
	root["else"] = map[string]any{"required": counts}
	root["$schema"], root["title"] = "https://json-schema.org/draft/2020-12/schema", "verdict.json"
	root["$defs"] = w.definitions
	return root
}

// readComments reads the comments of the fields of all structs in a package.
func (w *schemaWriter) readComments(t *testing.T, folder string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	require.NoError(t, err)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			fields, ok := spec.Type.(*ast.StructType)
			if !ok {
				return true
			}
			for _, field := range fields.Fields.List {
				for _, name := range field.Names {
					w.comments[file.Name.Name+"."+spec.Name.Name+"."+name.Name] = comment(field)
				}
			}
			return true
		})
	}
}

func comment(field *ast.Field) string {
	return strings.Join(strings.Fields(field.Doc.Text()+" "+field.Comment.Text()), " ")
}

// schema returns the schema of a type. Structs become definitions.
func (w *schemaWriter) schema(goType reflect.Type) map[string]any {
	switch goType.Kind() { //nolint:exhaustive // verdict.json has no others
	case reflect.Pointer:
		return w.schema(goType.Elem())
	case reflect.Struct:
		name := typeName(goType)
		if _, known := w.definitions[name]; !known {
			w.definitions[name] = true // a type may contain itself
			w.definitions[name] = w.object(goType)
		}
		return map[string]any{"$ref": "#/$defs/" + name}
	case reflect.Slice, reflect.Array:
		return map[string]any{"type": []string{"array", "null"}, "items": w.schema(goType.Elem())}
	case reflect.Map:
		return map[string]any{"type": []string{"object", "null"}, "additionalProperties": w.schema(goType.Elem())}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Uint, reflect.Uint32, reflect.Uint64:
		return map[string]any{"type": "integer", "minimum": 0}
	}
	return map[string]any{"type": "integer"}
}

func typeName(goType reflect.Type) string { return path.Base(goType.PkgPath()) + "." + goType.Name() }

// object returns the schema of a struct, including the fields of embedded structs.
func (w *schemaWriter) object(goType reflect.Type) map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, field := range reflect.VisibleFields(goType) {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !field.IsExported() || name == "-" || name == "" {
			continue
		}
		owner := goType
		for _, i := range field.Index[:len(field.Index)-1] {
			owner = owner.Field(i).Type
		}
		property := w.schema(field.Type)
		if text := w.comments[typeName(owner)+"."+field.Name]; text != "" {
			property["description"] = text
		}
		properties[name] = property
		if !strings.Contains(options, "omit") {
			required = append(required, name)
		}
	}
	return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

// A verdict depends only on files, so this package may not import a package that connects to a cloud.
func TestVerdictNeedsNoCloud(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	for pkg := range strings.FieldsSeq(string(out)) {
		for _, sdk := range []string{"gocloud.dev", "github.com/aws/", "cloud.google.com/", "github.com/Azure/"} {
			require.False(t, strings.HasPrefix(pkg, sdk), pkg)
		}
	}
}
