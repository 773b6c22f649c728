package sse

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTemplateEscapesItsValues(t *testing.T) {
	t.Parallel()
	e := &firstEvent{ID: `a"b\c`, Name: "n&1", Data: "{first.id}\n"}
	for _, tt := range []struct{ text, contentType, want string }{
		{"", "", ""},
		{"no placeholder", "", "no placeholder"},
		{`{"id":"{first.id}"}`, "application/json; charset=utf-8", `{"id":"a\"b\\c"}`},
		{`{"id":"{first.id}"}`, "application/problem+json", `{"id":"a\"b\\c"}`},
		{"id={first.id}&name={first.name}", "application/x-www-form-urlencoded", "id=a%22b%5Cc&name=n%261"},
		{"{first.name}{first.name}", "text/plain", "n&1n&1"},
		{"<{first.data}>", "", "<{first.id}\n>"},
		{"query { first { id } } {first", "", "query { first { id } } {first"},
	} {
		template, err := parseTemplate(tt.text)
		require.NoError(t, err, tt.text)
		require.Equal(t, tt.want, template.fill(e, escapeFor(tt.contentType)), tt.text)
	}
}

// FuzzTemplate checks that values of the first event cannot change the structure of the request.
func FuzzTemplate(f *testing.F) {
	f.Add(`"}`, "a b&c=d#e", "x\xff\r\n\u2028")
	f.Add("{first.data}", "/../", "")
	f.Fuzz(func(t *testing.T, id, name, data string) {
		e := &firstEvent{ID: id, Name: name, Data: data}
		fill := func(text string, escape func(string) string) string {
			template, err := parseTemplate(text)
			require.NoError(t, err)
			return template.fill(e, escape)
		}
		var got struct{ ID, Name, Data string }
		require.NoError(t, json.Unmarshal([]byte(fill(`{"id":"{first.id}","name":"{first.name}","data":"{first.data}"}`, escapeJSON)), &got))
		require.Equal(t, strings.ToValidUTF8(data, "\uFFFD") == data, got.Data == data)
		form, err := url.ParseQuery(fill("a={first.id}&b={first.name}&c={first.data}", escapeURL))
		require.NoError(t, err)
		require.Equal(t, url.Values{"a": {id}, "b": {name}, "c": {data}}, form)
		u, err := url.Parse("http://h" + fill("/x/{first.id}?q={first.data}", escapeURL))
		require.NoError(t, err)
		require.Equal(t, "/x/"+id, u.Path)
		require.Equal(t, data, u.Query().Get("q"))
		require.Equal(t, id+name+data, fill("{first.id}{first.name}{first.data}", noEscape))
	})
}
