package sseclient

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func FuzzWithParameter(f *testing.F) {
	f.Add("topic=a%20b&since=all&x=1", "since", "ü 1&x=2")
	f.Add("", "a b", "")
	f.Add("%zz=1&&since&=5&SINCE=2", "since", "+%")
	f.Fuzz(func(t *testing.T, query, name, value string) {
		got := withParameter(query, name, value)
		last, err := url.ParseQuery(got[strings.LastIndexByte(got, '&')+1:])
		require.NoError(t, err)
		require.Equal(t, url.Values{name: {value}}, last, "the parameter must be set once")
		var others []string
		for _, pair := range strings.Split(query, "&") {
			key, _, _ := strings.Cut(pair, "=")
			if plain, err := url.QueryUnescape(key); pair != "" && (err != nil || plain != name) {
				others = append(others, pair)
			}
		}
		prefix, _ := strings.CutSuffix(got, url.QueryEscape(name)+"="+url.QueryEscape(value))
		require.Equal(t, strings.Join(others, "&"), strings.TrimSuffix(prefix, "&"), "other parameters must not change")
		require.Equal(t, got, withParameter(got, name, value), "a second call must not change the query")
	})
}
