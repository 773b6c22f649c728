package service

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMalformedJSONIsAnErrorAndNeverAPanic(t *testing.T) {
	valid := []byte(`{"a":[{"x":"\u00e9\\\"\ud83d\ude00"},{"b":-1.25e-7}],"c":{"d":[true,false,null,""]}}`)
	require.True(t, validJSON(valid))
	for end := range valid {
		require.False(t, validJSON(valid[:end]), "%s", valid[:end])
	}
	for i := range valid {
		for _, c := range []byte("\x00\x1f\"\\{}[]:,x0-.\xff ") {
			changed := bytes.Clone(valid)
			changed[i] = c
			require.Equal(t, json.Valid(changed), validJSON(changed), "%q", changed)
		}
	}
	for _, bad := range []string{``, ` `, `01`, `1.`, `.5`, `1e`, `+1`, `-`, `tru`, `nulll`, `"\x"`, `"\u12g4"`, "\"\n\"", `[1,]`, `{"a":1,}`, `{a:1}`, `{"a"}`, `{"a":}`, `[1 2]`, `1 2`, `{"a":1]`, "\ufeff1"} {
		require.False(t, validJSON([]byte(bad)), bad)
	}
}

func TestNestingIsBounded(t *testing.T) {
	deep := func(n int) []byte {
		return []byte(`{"a":1,"b":` + strings.Repeat("[", n) + strings.Repeat("]", n) + "}")
	}
	require.True(t, validJSON(deep(maxDepth-1)))
	require.False(t, validJSON(deep(maxDepth)))
	require.False(t, validJSON(bytes.Repeat([]byte("["), 1<<20)))
	require.False(t, validJSON(bytes.Repeat([]byte(`{"a":`), 1<<18)))
}

// lookUp follows a path in a value that encoding/json decoded.
func lookUp(v any, steps []segment) (any, bool) {
	for _, step := range steps {
		switch in := v.(type) {
		case map[string]any:
			below, ok := in[step.key]
			if !ok || step.index >= 0 {
				return nil, false
			}
			v = below
		case []any:
			if step.index < 0 || step.index >= len(in) {
				return nil, false
			}
			v = in[step.index]
		default:
			return nil, false
		}
	}
	return v, true
}

// requireSame compares parseJSON with encoding/json.
func requireSame(t *testing.T, data []byte, path string, steps []segment) {
	t.Helper()
	d := new(document)
	valid := parseJSON(d, data, branches([][]segment{steps}))
	if valid != json.Valid(data) {
		require.False(t, valid, "parseJSON accepts %q, which is not JSON", data)
		require.Greater(t, bytes.Count(data, []byte("["))+bytes.Count(data, []byte("{")), maxDepth, "parseJSON rejects %q, which is JSON", data)
		return
	}
	if !valid {
		return
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var document any
	require.NoError(t, decoder.Decode(&document))
	want, _ := lookUp(document, steps)
	got, ok := d.value(0)
	require.Equal(t, want != nil, ok, "%s in %q", path, data)
	if !ok {
		return
	}
	switch want := want.(type) {
	case string:
		require.Equal(t, want, string(got.text), "%s in %q", path, data)
	case json.Number:
		require.Equal(t, want.String(), string(got.text), "%s in %q", path, data)
	default:
		require.False(t, got.scalar)
		var value any
		decoder = json.NewDecoder(bytes.NewReader(got.text))
		decoder.UseNumber()
		require.NoError(t, decoder.Decode(&value))
		require.Equal(t, want, value, "%s in %q", path, data)
	}
}

func FuzzPath(f *testing.F) {
	for _, data := range []string{
		`{"a":{"b":[0,17]},"a b":{"c":"x"},"é":null}`, `{"\u0061":1,"a":{"b":2}}`, `[1,[2,{"a":"\ud83d\ude00\ud83d"}]]`, `{"a":"\u0000","a":[{}]}`,
		` { "x" : { "a" : 1 } , "\u0061" : { "\u0062" : [ true , -1.5e+3 ] } } `, `{"a":{"b":[0,17]},"a":2,"\u00e9":"\u00e9"}`,
		`{"a":{"b":[0,17]},"a":{"b":[0]}}`, `"a"`, `{"":1,"a":""}`, `{"a":true}`,
		"{\"\xff\":1,\"\ufffd\":2}", "{\"\xff\":1}", `{"a":1e400}`, `"`, `{"a":[`,
	} {
		for _, path := range []string{"$.a", "$.a.b[1]", "$[1][1].a", "$['a b'].c", "$.\ufffd", "$[0]"} {
			f.Add([]byte(data), path)
		}
	}
	// The paths of gjson have wildcards, modifiers, queries and escapes; the paths of a description do not.
	const names = `{"abc":1,"list":[{"x":1},{"x":2}],"a.b":2,"@this":3,"#":4,"?":5,"|":6,"a\\":7,"!\"x\"":8,"0":9,"{a,b}":10}`
	for _, path := range []string{
		"$['a?c']", "$.list.#", "$.list['#.x']", "$.list['#(x=2)']", "$.list['1']", "$['list.1.x']", "$['list|0']", "$['@reverse']",
		"$['@this']", "$['a.b']", "$.#", "$['?']", "$['|']", `$['a\']`, `$['!"x"']`, "$['0']", "$['{a,b}']", "$[0]",
	} {
		f.Add([]byte(names), path)
	}
	f.Fuzz(func(t *testing.T, data []byte, path string) {
		steps, err := parsePath(strings.ToValidUTF8(path, "\ufffd")) // descriptions are valid UTF-8
		if err == nil {
			requireSame(t, data, path, steps)
		}
	})
}

func TestStringsAreDecoded(t *testing.T) {
	for raw, want := range map[string]string{
		`abc`: "abc", `a\u0062c`: "abc", `\ud83d\ude00`: "😀", `\ud83d`: "\ufffd", `\ud83dx`: "\ufffdx", `\ud83d\u0041`: "\ufffdA",
		`\/\b\f\n\r\t\"\\`: "/\b\f\n\r\t\"\\", ``: "", "\xff\xff": "\ufffd\ufffd",
	} {
		require.Equal(t, want, unquote(`"`+raw+`"`), raw)
	}
}

func TestPathsWithCommonSteps(t *testing.T) {
	var paths [][]segment
	for _, text := range []string{"$.a.b", "$.a", "$.a.c[1]", "$.d", "$.a.b"} {
		steps, err := parsePath(text)
		require.NoError(t, err)
		paths = append(paths, steps)
	}
	d := new(document)
	require.True(t, parseJSON(d, []byte(`{"d":1,"a":{"b":2,"c":[3,4]},"a":{"c":[5,6],"b":7}}`), branches(paths)))
	for i, want := range []string{"7", `{"c":[5,6],"b":7}`, "6", "1", "7"} {
		require.Equal(t, want, d.values[i].Raw)
	}
	require.True(t, parseJSON(d, []byte(`{"a":{"b":2},"a":0}`), branches(paths)))
	require.Empty(t, d.values[0].Raw, "the value is in the first member a, but the last member counts")
}
