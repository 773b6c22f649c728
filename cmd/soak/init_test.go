package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/service/probe"
)

func TestFailedInitLeavesNoFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, args := range [][]string{
		{"localhost/events"},
		{"http://127.0.0.1:1/x", "http://127.0.0.1:1/y"},
		{"http://127.0.0.1:1/x", "--name", "../hub"},
		{"http://127.0.0.1:1/x", "--seconds", "5"},
		{"http://127.0.0.1:1/x", "--header", "x"},
	} {
		require.Equal(t, exitUsage, execute(append([]string{"init"}, args...)), args)
	}
	require.Equal(t, 2, execute([]string{"init", "http://127.0.0.1:1/x"}), "init must exit with 2 if no server listens on the port")
	files, err := os.ReadDir(".")
	require.NoError(t, err)
	require.Empty(t, files)
}

func TestInitOverwritesNoFile(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.MkdirAll(filepath.Dir(workflowFile), 0o755))
	for _, name := range []string{"hub.js", plan.SettingsFile, workflowFile} {
		require.NoError(t, os.WriteFile(name, []byte("mine"), 0o600))
		require.Equal(t, exitUsage, execute([]string{"init", "http://127.0.0.1:1/x", "--name", "hub"}))
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, "mine", string(text))
		require.NoError(t, os.Remove(name))
	}
}

func TestInitRequiresAURL(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	for in, want := range map[string]string{"http://h/events\n": "http://h/events", " http://h/events ": "http://h/events"} {
		got, err := promptURL(strings.NewReader(in), &out)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := promptURL(strings.NewReader("\n"), &out)
	var usage usageError
	require.ErrorAs(t, err, &usage)
}

// The description file has the name of the service, which is the host of its URL by default.
func TestInitNamesTheService(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ url, name, want string }{
		{"https://hub.example:8443/events", "", "hub.example"}, {"http://[::1]:80/", "", "1"}, {"http://h/", "my hub", "my hub"}, {"http://h/", "hüb", "hüb"},
	} {
		got, err := serviceName(&probe.Config{URL: c.url, Name: c.name})
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
	for _, name := range []string{"../hub", "a/b", "a/", ".hub", "..", "/"} {
		_, err := serviceName(&probe.Config{URL: "http://h/", Name: name})
		require.EqualError(t, err, fmt.Sprintf("--name must have no / and must not start with a dot, because it names a file, got %q", name))
	}
}

func TestInitPinsTheActionToACommit(t *testing.T) {
	t.Parallel()
	const id = "0123456789abcdef0123456789abcdef01234567"
	for _, c := range []struct{ release, id, want string }{
		{"v1.2.3", id, "@" + id + " # v1.2.3\n"},
		{"", id, "@" + id + " # not a release\n"},
		{"", "", "@COMMIT # the full hash of a release; this build of soak does not record its own\n"},
	} {
		require.Contains(t, workflowOf(c.release, c.id), "- uses: sse-soak/sse-soak"+c.want)
	}
}

func TestInitSettingsFitTheDescription(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		config      probe.Config
		result      probe.Result
		lines       []string
		missingKeys []string
	}{
		{probe.Config{Topic: "news"}, probe.Result{Publishes: true, Topics: true}, []string{"topic: news", "publish-rate: 1"}, []string{"topics: "}},
		{probe.Config{}, probe.Result{Publishes: true, Topics: true}, []string{"topics: 4", "publish-rate: 1"}, []string{"topic: "}},
		{probe.Config{}, probe.Result{Publishes: true}, []string{"topics: 1", "publish-rate: 1"}, []string{"topic: "}},
		{probe.Config{Topic: "news"}, probe.Result{Topics: true}, []string{"topic: news"}, []string{"topics: ", "publish-rate: "}},
		{probe.Config{}, probe.Result{}, []string{"connections: 10", "seconds: 60", "service: ./hub.js"}, []string{"topics: ", "publish-rate: ", "follow-redirects: "}},
		{probe.Config{FollowRedirects: true}, probe.Result{}, []string{`follow-redirects: "true"`}, nil},
	} {
		c.config.URL = "http://h/x"
		var topics []string
		if c.config.Topic != "" {
			topics = []string{c.config.Topic}
		}
		settings, err := settingsFor(&c.config, topics, c.result, "hub.js")
		require.NoError(t, err)
		for _, line := range c.lines {
			require.Contains(t, settings, "\n"+line+"\n")
		}
		for _, key := range c.missingKeys {
			require.NotContains(t, settings, "\n"+key)
		}
	}
}

func TestInitTopics(t *testing.T) {
	t.Parallel()
	settings, err := settingsFor(&probe.Config{URL: "http://h/x"}, []string{"news", "007"}, probe.Result{Publishes: true, Topics: true}, "hub.js")
	require.NoError(t, err)
	require.Contains(t, settings, "\ntopic:\n    - news\n    - \"007\"\n")
	for want, line := range map[string]string{
		"--topic must have unique names, got a, a": "--topic a --topic a",
		"--topic must be passed at most 10 times, the number of streams of the first run, got 11; add further topics to soak.yaml": strings.Repeat(" --topic a", 11),
		`--topic must be a word in the URL, such as news in https://HOST/rooms/news/events, got "nws"`:                             "--topic nws",
	} {
		_, _, err := soak(t, append([]string{"init", "http://127.0.0.1:1/rooms/news/events"}, strings.Fields(line)...)...)
		require.ErrorAs(t, err, &usageError{})
		require.EqualError(t, err, want)
	}
}

func TestInitUpdateKeepsEdits(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(module string, mode overwriteMode) string {
		var out bytes.Buffer
		c := &probe.Config{URL: "http://h/x", Name: "hub"}
		require.NoError(t, writeProject(&out, c, nil, probe.Result{Module: module, Missing: []string{"end: unknown."}, Variables: []string{"SUBSCRIBE_TOKEN", "PUBLISH_TOKEN"}}, mode))
		return out.String()
	}
	read := func(name string) string {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		return string(text)
	}
	first := write("one\n", overwriteMode{})
	require.Contains(t, first, "Not found:\n  - end: unknown.\n")
	require.Contains(t, first, "A run reads tokens from the environment: set SUBSCRIBE_TOKEN and PUBLISH_TOKEN.\n\nNext, a first run")
	write("two\n", overwriteMode{update: true})
	require.Contains(t, read("hub.js"), "two\n")
	require.NoFileExists(t, "hub.new.js")

	require.NoError(t, os.WriteFile("hub.js", []byte(strings.Replace(read("hub.js"), "two", "mine", 1)), 0o600))
	output := write("three\n", overwriteMode{update: true})
	require.Contains(t, output, "Kept hub.js, which was edited; the new one is hub.new.js.")
	require.Contains(t, read("hub.js"), "mine\n")
	require.Contains(t, read("hub.new.js"), "three\n")
	require.Contains(t, output, "Next, a first run of 10 streams for 60 s, which uses the kept description:\n    soak run\n")

	require.NoError(t, os.WriteFile(plan.SettingsFile, []byte("connections: 3\nservice: ./hub.js\n"), 0o600))
	require.Contains(t, write("three\n", overwriteMode{update: true}), "Next, a first run with the settings of soak.yaml, which uses the kept description:\n    soak run\n")
	write("four\n", overwriteMode{force: true})
	require.Contains(t, read("hub.js"), "four\n")
}
