package shard

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFileNameHasTheProcess(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for range 1000 { // processes of one host, each of them runner 1
		names[FileName(Runner{Index: 1, Host: "laptop.local", Process: NewID()})] = true
	}
	require.Len(t, names, 1000)
	for _, c := range []struct {
		runner Runner
		want   string
	}{
		{Runner{Index: 7}, "runner-7.json.gz"},
		{Runner{Index: 7, Host: "h", Process: "0123456789abcdef"}, "runner-7-h-01234567.json.gz"},
		{Runner{Index: 12, Host: "Ann's Mac/../..", Process: "01234567"}, "runner-12-Ann-s-Mac-..-..-01234567.json.gz"},
		{Runner{Index: 1, Process: "01234567"}, "runner-1-01234567.json.gz"},
		{Runner{Index: 1, Host: strings.Repeat("h", 99), Process: "01234567"}, "runner-1-" + strings.Repeat("h", 40) + "-01234567.json.gz"},
	} {
		name := FileName(c.runner)
		require.Equal(t, c.want, name)
		index, ok := IndexOf(name)
		require.True(t, ok)
		require.Equal(t, c.runner.Index, index)
		require.True(t, IsFile(name))
	}
	for _, name := range []string{"", "copy.json.gz", "runner-x.json.gz", "runner-1.json", "runner-99999999999999999999.json.gz", "runner-12x.json.gz"} {
		_, ok := IndexOf(name)
		require.False(t, ok, name)
	}
}
