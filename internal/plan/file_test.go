package plan

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// flagsOf returns the flags of `soak run`, and the settings that they set.
func flagsOf(t *testing.T) (*pflag.FlagSet, *Plan, *Local) {
	t.Helper()
	p, l := Default(), DefaultLocal()
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	AddFlags(f, ForSuite("", append(p.Settings(), l.Settings()...)))
	f.Int("backends", 1, "")
	f.String("config", SettingsFile, "")
	return f, &p, &l
}

func isStormSetting(name string) bool { return name == "open-percent" }

func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "settings.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestFlagsFromFile(t *testing.T) {
	f, p, l := flagsOf(t)
	t.Setenv("SECONDS", "90")
	require.NoError(t, f.Parse([]string{"--connections", "7"}))
	_, err := FlagsFromEnvironment(f)
	require.NoError(t, err)
	read, err := FlagsFromFile(f, writeFile(t, `
# a flag overrides its variable, which overrides this file
connections: 1
seconds: 1
noop-interval: 0.5
reconnect: true
backends: 2
prefix: "007-"
at: ["10s one: true", "20s two: false"]
open-percent: 3 # a setting of another suite
`), true, isStormSetting)
	require.NoError(t, err)
	require.True(t, read)
	require.Equal(t, []any{7, 90, .5, true, "007-"}, []any{p.Connections, p.Seconds, p.NoopInterval, p.Reconnect, p.Prefix})
	require.Equal(t, []string{"10s one: true", "20s two: false"}, l.At)
	require.Equal(t, "2", f.Lookup("backends").Value.String())
}

func TestFlagsFromFileRejectsInvalidFiles(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"conections: 5":                   "line 1: conections is not a setting; see `soak run --help-all`",
		"seconds: 60\nconnections: many":  `line 2: connections must be a whole number, got "many"`,
		"connections:":                    "line 1: connections must have a value; write one, such as `connections: 1200`",
		"connections: {a: 1}":             "connections must be a string, a number or a boolean",
		"topic:":                          "topic must have a value; write one, or remove the line",
		"at:\n  - 1s deploy: make":        "at must be a string, a number or a boolean; put quotes around a string that contains a colon and a space",
		"backend-token: abc":              "backend-token must not be in a file, because it is a secret; set the variable BACKEND_TOKEN",
		"config: other.yaml":              "config is not a setting",
		"seconds: 60\nseconds: 61":        "already defined at line 1",
		"connections: [5, 6]":             "connections must have one value, got 2; write one, such as `connections: 1200`",
		"connections: []":                 "connections must have one value, got 0; write one, such as `connections: 1200`",
		"stages: [10, 20]":                "stages must have one value, got 2; write one, such as `stages: 10,20`",
		"seconds: 60\n---\nseconds: 61":   "must be one YAML document",
		"seconds: 60\n---\n{":             "must be one YAML document",
		"- connections":                   "not YAML such as `connections: 1200`",
		"connections: 5\n\tseconds: 1000": "not YAML such as",
	} {
		f, _, _ := flagsOf(t)
		f.String("stages", "", "")
		_, err := FlagsFromFile(f, writeFile(t, text), true, isStormSetting)
		require.ErrorContains(t, err, want, "%s", text)
		require.NotContains(t, err.Error(), "\n", "an error must be one sentence")
	}
}

func TestOnlyAnExplicitFileMustExist(t *testing.T) {
	t.Parallel()
	f, _, _ := flagsOf(t)
	path := filepath.Join(t.TempDir(), SettingsFile)
	read, err := FlagsFromFile(f, path, false, isStormSetting)
	require.NoError(t, err)
	require.False(t, read)
	_, err = FlagsFromFile(f, path, true, isStormSetting)
	require.ErrorContains(t, err, "read the settings: open "+path)
	read, err = FlagsFromFile(f, writeFile(t, "# nothing\n"), true, isStormSetting)
	require.NoError(t, err)
	require.True(t, read)

	require.NoError(t, os.Symlink("missing.yaml", path))
	for _, explicit := range []bool{false, true} {
		_, err := FlagsFromFile(f, path, explicit, isStormSetting)
		require.EqualError(t, err, "read the settings: "+path+" is a link to a missing file; fix or remove the link")
	}
}

func TestSettingsTextKeepsStrings(t *testing.T) {
	t.Parallel()
	for _, topic := range []string{"news", "7", "007", "1e3", "0x1f", "1_000", "true", "null", "a: b", "12345678901234567890123"} {
		text, err := SettingsText(map[string][]string{"topic": {topic, "other"}, "topics": {"4"}})
		require.NoError(t, err)
		f, p, _ := flagsOf(t)
		_, err = FlagsFromFile(f, writeFile(t, text), true, isStormSetting)
		require.NoError(t, err, text)
		require.Equal(t, []string{topic, "other"}, p.TopicNames)
		require.Equal(t, 4, p.Topics)
	}
}

// FlagsFromFile accepts the file that init writes.
func TestSettingsTextRoundTrip(t *testing.T) {
	t.Parallel()
	text, err := SettingsText(map[string][]string{
		"service": {"./hub.js"}, "backend-url": {"https://hub.example:8443"}, "topics": {"4"}, "publish-rate": {"0.5"},
	})
	require.NoError(t, err)
	f, p, _ := flagsOf(t)
	_, err = FlagsFromFile(f, writeFile(t, text), true, isStormSetting)
	require.NoError(t, err, text)
	require.Equal(t, []any{"./hub.js", "https://hub.example:8443", 4, .5}, []any{p.Service, p.BackendURL, p.Topics, p.PublishRate})
	f.VisitAll(func(flag *pflag.Flag) {
		if _, ok := flag.Value.(Setting); ok {
			require.Regexp(t, `(?m)^(# )?"?`+flag.Name+`"?: `, text)
		}
	})
	require.Contains(t, text, "\n# connections: 1200\n")
	require.Contains(t, text, "\npublish-rate: 0.5\n")
}
