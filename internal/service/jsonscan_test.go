package service

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func pathsOf(t testing.TB, all ...string) *paths {
	t.Helper()
	p := new(paths)
	for _, one := range all {
		steps, err := parsePath(one)
		require.NoError(t, err, one)
		p.add(steps)
	}
	return p
}

func TestPathsAreFoundInOnePass(t *testing.T) {
	p := pathsOf(t, "$.a.b[1]", "$['a b'].c", `$["é"]`, "$.a")
	for _, c := range []struct {
		data string
		want [maxPaths]string // kind and raw
	}{
		{`{"a":{"b":[0,17]},"a b":{"c":"x"},"é":null}`, [maxPaths]string{"017", `"x`, "nnull", `{{"b":[0,17]}`}},
		{` { "x" : { "a" : 1 } , "\u0061" : { "\u0062" : [ true , -1.5e+3 ] } } `, [maxPaths]string{"0-1.5e+3", "", "", `{{ "\u0062" : [ true , -1.5e+3 ] }`}},
		{`{"a":{"b":[0,17]},"a":2,"\u00e9":"\u00e9"}`, [maxPaths]string{"", "", `"\u00e9`, "02"}},
		{`[{"a":1}]`, [maxPaths]string{}},
		{`"a"`, [maxPaths]string{}},
		{`{"a":[1,2]}`, [maxPaths]string{"", "", "", "[[1,2]"}},
		{`{"":1,"a":""}`, [maxPaths]string{"", "", "", `"`}},
	} {
		var found [maxPaths]span
		require.True(t, p.scan([]byte(c.data), &found), c.data)
		for i, v := range found {
			got := ""
			if v.kind != 0 {
				got = string(v.kind) + c.data[v.start:v.end]
			}
			require.Equal(t, c.want[i], got, "%s path %d", c.data, i)
		}
	}
}

func TestMalformedJSONIsAnErrorAndNeverAPanic(t *testing.T) {
	p := pathsOf(t, "$.a[1].b")
	whole := []byte(`{"a":[{"x":"\u00e9\\\"\ud83d\ude00"},{"b":-1.25e-7}],"c":{"d":[true,false,null,""]}}`)
	var found [maxPaths]span
	require.True(t, p.scan(whole, &found))
	for end := range whole {
		require.False(t, p.scan(whole[:end], &found), "%s", whole[:end])
	}
	for i := range whole {
		for _, c := range []byte("\x00\x1f\"\\{}[]:,x0-.\xff ") {
			changed := bytes.Clone(whole)
			changed[i] = c
			require.Equal(t, json.Valid(changed), p.scan(changed, &found), "%q", changed)
		}
	}
	for _, bad := range []string{``, ` `, `01`, `1.`, `.5`, `1e`, `+1`, `-`, `tru`, `nulll`, `"\x"`, `"\u12g4"`, "\"\n\"", `[1,]`, `{"a":1,}`, `{a:1}`, `{"a"}`, `{"a":}`, `[1 2]`, `1 2`, `{"a":1]`, "\ufeff1"} {
		require.False(t, p.scan([]byte(bad), &found), bad)
	}
}

func TestNestingIsBounded(t *testing.T) {
	p := pathsOf(t, "$.a")
	var found [maxPaths]span
	deep := func(n int) []byte {
		return []byte(`{"a":1,"b":` + strings.Repeat("[", n) + strings.Repeat("]", n) + "}")
	}
	require.True(t, p.scan(deep(maxDepth-1), &found))
	require.False(t, p.scan(deep(maxDepth), &found))
	require.False(t, p.scan(bytes.Repeat([]byte("["), 1<<20), &found))
	require.False(t, p.scan(bytes.Repeat([]byte(`{"a":`), 1<<18), &found))
}

// lookUp goes the same way in what encoding/json made of the payload.
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

// requireSame compares the evaluator with encoding/json.
func requireSame(t *testing.T, data []byte, path string, steps []segment) {
	t.Helper()
	p := new(paths)
	p.add(steps)
	var found [maxPaths]span
	valid := p.scan(data, &found)
	if valid != json.Valid(data) {
		require.False(t, valid, "%q is no JSON", data)
		require.Greater(t, bytes.Count(data, []byte("["))+bytes.Count(data, []byte("{")), maxDepth, "%q is JSON", data)
		return
	}
	if !valid {
		return
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var whole any
	require.NoError(t, decoder.Decode(&whole))
	want, ok := lookUp(whole, steps)
	require.Equal(t, ok, found[0].kind != 0, "%s in %q", path, data)
	if !ok {
		return
	}
	raw := data[found[0].start:found[0].end]
	if found[0].kind == '"' {
		text, isText := want.(string)
		require.True(t, isText)
		require.True(t, equal(raw, text, strings.ContainsRune(text, '\uFFFD')), "%q is not %q", raw, text)
		require.False(t, equal(raw, text+"x", true))
		return
	}
	var got any
	decoder = json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	require.NoError(t, decoder.Decode(&got))
	require.Equal(t, want, got, "%s in %q", path, data)
}

func FuzzPath(f *testing.F) {
	for _, data := range []string{
		`{"a":{"b":[0,17]},"a b":{"c":"x"},"é":null}`, `{"\u0061":1,"a":{"b":2}}`, `[1,[2,{"a":"\ud83d\ude00\ud83d"}]]`, `{"a":"\u0000","a":[{}]}`,
		"{\"\xff\":1,\"\ufffd\":2}", `{"a":1e400}`, `"`, `{"a":[`,
	} {
		for _, path := range []string{"$.a", "$.a.b[1]", "$[1][1].a", "$['a b'].c", "$.\ufffd", "$[0]"} {
			f.Add([]byte(data), path)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, path string) {
		steps, err := parsePath(strings.ToValidUTF8(path, "\ufffd")) // as a description's JSON has it
		if err == nil {
			requireSame(t, data, path, steps)
		}
	})
}

func TestMarkersAreComparedAsTheyAreMeant(t *testing.T) {
	for _, c := range []struct {
		raw, want string
		same      bool
	}{
		{`abc`, "abc", true}, {`abc`, "abd", false}, {`ab`, "abc", false}, {`abc`, "ab", false}, {`a\u0062c`, "abc", true}, {`\ud83d\ude00`, "😀", true},
		{`\ud83d`, "\ufffd", true}, {`\ud83dx`, "\ufffdx", true}, {`\/\b\f\n\r\t\"\\`, "/\b\f\n\r\t\"\\", true}, {``, "", true}, {`\n`, `\n`, false},
		{"\xff", "\ufffd", true},
	} {
		require.Equal(t, c.same, equal([]byte(c.raw), c.want, strings.ContainsRune(c.want, '\ufffd')), fmt.Sprintf("%q %q", c.raw, c.want))
	}
}
