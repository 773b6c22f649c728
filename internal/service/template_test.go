package service

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

var everyField = []Field{Base, Topic, N, ID, Run, Seq, SentAt, Token, Client, Sum, Padding, Prompt}

func fill(t testing.TB, text string, l language, v Values) string {
	t.Helper()
	return string(compileTemplate(text, l, everyField, func(format string, args ...any) {
		t.Fatalf("%s: "+format, append([]any{text}, args...)...)
	}).Append(nil, &v))
}

func TestTemplates(t *testing.T) {
	v := values
	for _, c := range []struct {
		text string
		l    language
		want string
	}{
		{"{base}/{n}/{seq}?t={sentAt}&to={base}", languageURL, "http://localhost:8080/6/17?t=1732250000000000&to=http%3A%2F%2Flocalhost%3A8080"},
		{"{base}/a b/é/{}?q=x+y&z={}", languageURL, "http://localhost:8080/a%20b/%C3%A9/%7B%7D?q=x+y&z=%7B%7D"},
		{`{base}?j={"a":["{run}",{seq}],"b":"1+1 # 2"}&k={run}`, languageURL, "http://localhost:8080?j=%7B%22a%22:%5B%22r%5C%221%22,17%5D,%22b%22:%221%2B1%20%23%202%22%7D&k=r%221"},
		{`{base}?j=["{topic}"]`, languageURL, "http://localhost:8080?j=%5B%22t%201%2F%C3%A9%22%5D"},
		{`{"a":"\"{client}\"","b":"\\{client}"}`, languageJSON, `{"a":"\"c\n1\"","b":"\\c\n1"}`},
		{`{client}|{topic}`, languageText, "c\n1|t 1/é"},
		{`x {client} {topic}`, languageHeader, "x c1 t 1/é"},
		{`a={client}&b={run}`, languageForm, "a=c%0A1&b=r%221"},
		{`{"a":"{sum}"} {sum}`, languageText, `{"a":"` + checksum(v.Run) + `"} ` + checksum(v.Run)},
		{``, languageText, ""},
	} {
		require.Equal(t, c.want, fill(t, c.text, c.l, v), c.text)
	}
}

// A topic with any text arrives unchanged in a URL or a body, and does not change the text around it.
func FuzzEscape(f *testing.F) {
	for _, text := range []string{"a", "t 1/é?&=#%+\"\\{}\n\r\x00\x7f", `","x":"`, "../..", "😀"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return
		}
		v := Values{Base: "http://h:1/b", Topic: text}
		var body struct{ A, B string }
		require.NoError(t, json.Unmarshal([]byte(fill(t, `{"A":"x{topic}","B":"y"}`, languageJSON, v)), &body))
		require.Equal(t, "x"+text, body.A)
		require.Equal(t, "y", body.B)

		u, err := url.Parse(fill(t, `{base}/p/{topic}/q?a={topic}&b={"A":"{topic}"}&c=z`, languageURL, v))
		require.NoError(t, err)
		require.Equal(t, "h:1", u.Host)
		require.Equal(t, "/b/p/"+text+"/q", u.Path)
		query, err := url.ParseQuery(u.RawQuery)
		require.NoError(t, err)
		require.Equal(t, url.Values{"a": {text}, "b": query["b"], "c": {"z"}}, query)
		require.NoError(t, json.Unmarshal([]byte(query.Get("b")), &body))
		require.Equal(t, text, body.A)

		form, err := url.ParseQuery(fill(t, `a={topic}&b={"A":"{topic}"}`, languageForm, v))
		require.NoError(t, err)
		require.Equal(t, text, form.Get("a"))

		request, err := http.NewRequest(http.MethodGet, "http://h", nil)
		require.NoError(t, err)
		request.Header.Set("X", fill(t, "v {topic}", languageHeader, v))
		require.NotRegexp(t, "[\r\n\x00]", request.Header.Get("X"))
	})
}
