package service

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/module"
)

var update = flag.Bool("update", false, "update the golden files")

func check(description []byte) Mistakes {
	_, err := Parse(description)
	if mistakes := (Mistakes)(nil); errors.As(err, &mistakes) {
		return mistakes
	}
	if err != nil {
		return Mistakes{err.Error()}
	}
	return nil
}

// fullDescription has most fields of endless streams.
const fullDescription = `{
  "name": "mine", "token": true,
  "connect": { "maxEventSize": 4000000, "method": "POST", "url": "{base}/s/{topic}?n={n}&id={id}", "headers": { "Authorization": "Bearer {token}", "Accept": "text/event-stream" },
    "body": "{\"run\":\"{run}\"}", "then": { "event": "hello", "client": "id", "url": "{base}/go/{client}", "ok": [204] } },
  "heartbeat": { "event": "ping", "every": 0.5 },
  "message": { "event": ["a", "b"], "seq": "json:$.a['b c'][2]", "run": "id:^(.*)-", "sentAt": "data:at=(\\d+)", "sum": "json:$.sum", "per": "topic", "order": "any", "delivery": "at-least-once" },
  "end": { "by": "server", "lifetime": 600 },
  "resume": { "by": { "query": "since" }, "id": "json:$.id", "gap": { "event": "lost" } },
  "publish": { "url": "{base}/p/{topic}", "body": "{run} {seq} {sentAt} {sum}", "headers": { "Authorization": "Bearer {token}" } }
}`

func TestParse(t *testing.T) {
	s := mustParse(t, fullDescription)
	require.True(t, s.HasToken)
	require.False(t, s.HasURL)
	require.Equal(t, []string{"a", "b"}, s.Message.event)
	require.True(t, s.Message.AnyOrder && s.Message.AtLeastOnce && s.Message.PerTopic)
	require.Equal(t, Resume{Query: "since", SendsReadingID: true}, s.Resume)
	require.Equal(t, []int{200, 201, 202, 204}, s.Publish.OK)
	require.Equal(t, 4_000_000, s.MaxEventSize)
	require.Equal(t, `["a", "b"]`, s.Source("message.event"))
	require.Equal(t, "", s.Source("message.data"))

	s = serviceWith(t, `"message":"unchecked"`)
	require.True(t, s.Resume.Header)
	require.Equal(t, ByClient, s.End.By)
	require.Equal(t, "GET", s.Connect.Method)
	require.Nil(t, s.Publish)
	s = mustParse(t, `{"name":"mine","url":true,"connect":{},"message":"unchecked"}`)
	require.True(t, s.HasURL && len(s.Connect.URL.parts) == 0)
	for _, name := range []string{"SUBSCRIBE_TOKEN", "BACKEND_TOKEN"} {
		s := serviceWith(t, `"message":"unchecked","token":"`+name+`"`)
		require.False(t, s.HasToken)
		require.Equal(t, name, s.Variable())
	}
}

// testdata/mistakes.txt has descriptions, separated by blank lines. The golden file lists the mistakes of each.
func TestInvalidDescriptions(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "mistakes.txt"))
	require.NoError(t, err)
	var out strings.Builder
	for description := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
		mistakes := check([]byte(description))
		require.NotEmpty(t, mistakes, description)
		out.WriteString(description + "\n")
		for _, m := range mistakes {
			require.NotContains(t, m, "\n")
			require.NotContains(t, m, "%!")
			out.WriteString("  - " + m + "\n")
		}
		out.WriteString("\n")
	}
	golden := filepath.Join("testdata", "mistakes.golden")
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(out.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), out.String())
}

// In an otherwise valid description, a misspelled field, a field of the wrong type and a null field are reported by
// name.
func TestEachFieldIsChecked(t *testing.T) {
	var paths []string
	var walk func(path string, v any)
	walk = func(path string, v any) {
		if object, ok := v.(map[string]any); ok {
			for name, below := range object {
				full := strings.TrimPrefix(path+"."+name, ".")
				if path != "connect.headers" && path != "publish.headers" {
					paths = append(paths, full)
				}
				walk(full, below)
			}
		}
	}
	var valid any
	require.NoError(t, json.Unmarshal([]byte(fullDescription), &valid))
	walk("", valid)
	require.Greater(t, len(paths), 35)
	change := func(path string, do func(in map[string]any, name string)) Mistakes {
		var v map[string]any
		require.NoError(t, json.Unmarshal([]byte(fullDescription), &v))
		steps, in := strings.Split(path, "."), v
		for _, step := range steps[:len(steps)-1] {
			in = in[step].(map[string]any)
		}
		do(in, steps[len(steps)-1])
		text, err := json.Marshal(v)
		require.NoError(t, err)
		return check(text)
	}
	for _, path := range paths {
		mistakes := change(path, func(in map[string]any, name string) { in[name+"x"] = in[name]; delete(in, name) })
		require.Contains(t, mistakes.Error(), path+"x is unknown; did you mean "+path+"? (known: ")
		require.NotContains(t, mistakes.Error(), path+" is missing")
		mistakes = change(path, func(in map[string]any, name string) { in[name] = []any{[]any{}} })
		require.Contains(t, mistakes.Error(), path, "no mistake names %s, which is a list", path)
		mistakes = change(path, func(in map[string]any, name string) { in[name] = nil })
		require.Contains(t, mistakes.Error(), path+" is null, or Infinity or NaN, which JSON cannot represent; set a value, or remove it")
	}
}

func TestHashIgnoresOrderAndSpace(t *testing.T) {
	hash := func(text string) string {
		s := mustParse(t, text)
		return s.Hash()
	}
	one := hash(`{"name":"a","connect":{"url":"{base}","headers":{"A":"1","B":"2"}},"message":{"every":15}}`)
	require.Equal(t, one, hash(`{ "message": {"every":1.5e1}, "connect": {"headers":{"B":"2","A":"1"}, "url":"{base}"}, "name": "\u0061" }`))
	for _, other := range []string{
		`{"name":"a","connect":{"url":"{base}","headers":{"A":"1","B":"3"}},"message":{"every":15}}`,
		`{"name":"a","connect":{"url":"{base}","headers":{"A":"1","B":"2"}},"message":{"every":16}}`,
		`{"name":"a","connect":{"url":"{base}","headers":{"A":"1","B":"2"}},"message":{"every":15},"token":true}`,
	} {
		require.NotEqual(t, one, hash(other))
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(fullDescription))
	f.Add([]byte(`{"a\n\nb":1,"connect":{"headers":{"\n":""}},"message":{"seq":"id:(\n"}}`))
	f.Add([]byte(`{"name":"a","connect":{"url":"{base}?a={\"b\":\"{topic}\"}&c=%2"},"message":{"seq":"id:(a|b)*"}}`))
	for _, name := range includedModules {
		f.Add(exportedDescription(f, filepath.Join(modules, name+".js")))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Parse(text)
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				require.NotEmpty(t, line)
			}
			return
		}
		second := mustParse(t, text)
		require.Equal(t, s.Hash(), second.Hash())
		require.NotContains(t, requestText(&s.Connect, values), "\x00")
		reader := s.Reader("r1")
		for _, b := range []*Block{newBlock("", "1", "0"), newBlock("ping", "x:1", `{"run":"r1","seq":1}`), {HasComment: true}} {
			reader.Read(b)
		}
	})
}

// The first code block of docs/services.md must compile. Each line of the second must be an error in the golden file.
func TestDescriptionsInDocsCompile(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "services.md"))
	require.NoError(t, err)
	code := regexp.MustCompile(`(?m)(?:^    .*\n)+`).FindAllString(string(page), -1)
	require.Greater(t, len(code), 1)
	s := mustParse(t, module.Evaluate(t, code[0]))
	require.Equal(t, "mine", s.Name)
	golden, err := os.ReadFile(filepath.Join("testdata", "mistakes.golden"))
	require.NoError(t, err)
	for line := range strings.Lines(code[1]) {
		require.Contains(t, string(golden), "  - "+strings.TrimSpace(line)+"\n")
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	names := []string{"on", "out", "connections", "seconds", "seq", "storm"}
	for name, want := range map[string]string{
		"conections": "connections", "Conectoins": "connections", "sceonds": "seconds", "sqe": "seq", "stom": "storm", "oout": "out",
		"json": "", "o": "", "interval": "", "connect": "",
	} {
		require.Equal(t, want, Nearest(name, names), name)
	}
}
