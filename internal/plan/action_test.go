package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseActions(t *testing.T) {
	t.Parallel()
	all, err := ParseActions([]string{"60s: nginx -s reload", "1m30s deploy: systemctl restart hub --to 'a: b'", " 0s  x.1 :  true "})
	require.NoError(t, err)
	require.Equal(t, []Action{
		{"action-1", time.Minute, "nginx -s reload"},
		{"deploy", 90 * time.Second, "systemctl restart hub --to 'a: b'"},
		{"x.1", 0, "true"},
	}, all)
	none, err := ParseActions(nil)
	require.NoError(t, err)
	require.Empty(t, none)

	var lines []string // a variable has one action per line
	setting := Setting{Name: "AT", Value: &lines}
	require.NoError(t, setting.Set("5s a: true\n\n6s b: false\n"))
	require.NoError(t, setting.Set("7s c: true"))
	require.Equal(t, []string{"5s a: true", "6s b: false", "7s c: true"}, lines)
}

func TestParseActionsRejectsInvalidLines(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"":                                  "--at must be TIME [NAME]: COMMAND",
		"60s nginx -s reload":               "--at must be TIME [NAME]: COMMAND",
		"60s two words: true":               "--at must be TIME [NAME]: COMMAND",
		"60s:":                              "--at must be TIME [NAME]: COMMAND",
		": true":                            "--at must be TIME [NAME]: COMMAND",
		"60: true":                          `--at must begin with a time after the start, such as 60s, 1m30s or 2h, got "60"`,
		"-1s: true":                         `2h, got "-1s"`,
		"60s ../x: true":                    "--at must have a name of up to 40 letters, digits, '.', '_' and '-' that starts with a letter or a digit",
		"http://host/x":                     `2h, got "http"`,
		"5s action-1: a\n":                  "",
		"5s a/b: rm -rf \"$X\"":             "--at must have a name of up to 40 letters",
		"deploy 60s: systemctl restart hub": `2h, got "deploy"`,
	} {
		_, err := ParseActions([]string{line})
		if want == "" {
			require.NoError(t, err, line)
			continue
		}
		require.ErrorContains(t, err, want, line)
	}
	_, err := ParseActions([]string{"5s a: true", "6s a: true"})
	require.ErrorContains(t, err, `--at must have unique names, got "6s a: true" and another action named a`)
}
