package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/secret"
	"github.com/sse-soak/sse-soak/test/promserver"
)

// folder returns the folder of a run that ended now.
func folder(t *testing.T, extra map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run-1")
	now := float64(time.Now().UnixMilli()) / 1000
	files := map[string]string{
		"verdict.json": fmt.Sprintf(`{"testid": "run-1", "verdict": "pass", "started_unix_s": %f, "ended_unix_s": %f, "runners": [{"k6_version": "v2.2.0"}]}`, now-10, now),
		"report.html":  "<p>well</p>",
		"run.json":     `{"command": ["soak", "run"]}`,
	}
	for name, text := range extra {
		files[name] = text
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

// serve starts a server until the end of the test, and returns its HOST:PORT.
func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func makeArchive(t *testing.T, from Source) (file string, c Contents) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "run.tar.gz")
	c, err := Make(t.Context(), from, file)
	require.NoError(t, err)
	return file, c
}

// archiveFiles opens an archive, and returns its files by name and its Contents.
func archiveFiles(t *testing.T, file string) (map[string]string, Contents) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "new")
	c, err := Open(t.Context(), file, dir)
	require.NoError(t, err)
	files := map[string]string{}
	require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		files[name] = string(text)
		return err
	}))
	return files, c
}

func TestArchiveContents(t *testing.T) {
	t.Parallel()
	address := promserver.Start(t, serve(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "metric{token=\"of-the-service\"} 1\n")
	}))
	run := folder(t, map[string]string{"shards/runner-1.json.gz": gzipText(t, "{}"), "connections.csv": "a,b\n"})
	file, c := makeArchive(t, Source{
		Folder: run, Prometheus: "http://me:pass-word@" + address, Version: "v-test",
		Secrets: NewSecrets([]string{"BACKEND_TOKEN=of-the-service"}, ""),
	})
	files, second := archiveFiles(t, file)
	require.Equal(t, c, second)
	require.Empty(t, c.Prometheus.Missing)
	require.Positive(t, c.Prometheus.Samples)
	require.GreaterOrEqual(t, c.Prometheus.Series, 5)
	require.Equal(t, "http://me:xxxxx@"+address, c.Prometheus.Address)
	require.Equal(t, "v-test", c.Soak)
	for _, name := range []string{"verdict.json", "report.html", "shards/runner-1.json.gz", "connections.csv", ExportFile, "SHA256SUMS", "archive.json"} {
		assert.Contains(t, files, name)
	}
	require.Contains(t, files[ExportFile], "[redacted]", "the value of a label must be replaced")
	for name, text := range files {
		assert.NotContains(t, text, "of-the-service", name)
		assert.NotContains(t, text, "pass-word", name)
	}
}

func TestUnusablePrometheus(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	closedAddress := server.Listener.Addr().String()
	server.Close()
	denyingAddress := serve(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "who are you?", http.StatusUnauthorized) })
	for address, want := range map[string]string{
		"":                                      "no Prometheus address",
		"http://me:pass-word@" + closedAddress:  "connection refused",
		"http://me:pass-word@" + denyingAddress: ": 401 Unauthorized: who are you?",
	} {
		file, c := makeArchive(t, Source{Folder: folder(t, nil), Prometheus: address})
		require.Contains(t, c.Prometheus.Missing, want)
		files, second := archiveFiles(t, file)
		require.Equal(t, c.Prometheus, second.Prometheus)
		require.NotContains(t, files["archive.json"], "pass-word")
		require.Contains(t, files, "verdict.json")
	}
	for _, answer := range []string{"", "\x00", "<html>log in</html>"} {
		other := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, answer) })
		_, c := makeArchive(t, Source{Folder: folder(t, nil), Prometheus: "http://" + other})
		require.Contains(t, c.Prometheus.Missing, "check that this is the address of a Prometheus server", "%q", answer)
	}
	withPath := serve(t, http.NotFound) // a Prometheus server at a path
	_, c := makeArchive(t, Source{Folder: folder(t, nil), Prometheus: "http://a-token@" + withPath + "/?apikey=a-key"})
	require.Contains(t, c.Prometheus.Missing, "and its path if it has one")
	require.NotRegexp(t, "a-token|a-key", c.Prometheus.Missing)
}

func TestMakeRejectsInvalidSource(t *testing.T) {
	t.Parallel()
	_, err := Make(t.Context(), Source{Folder: folder(t, nil), Prometheus: "prometheus:9090"}, filepath.Join(t.TempDir(), "x"))
	require.ErrorContains(t, err, "must begin with http:// or https://")
	_, err = Make(t.Context(), Source{Folder: t.TempDir()}, filepath.Join(t.TempDir(), "x"))
	require.ErrorContains(t, err, "has no verdict.json; run `soak merge")
	_, err = Make(t.Context(), Source{Folder: filepath.Join(t.TempDir(), "none")}, filepath.Join(t.TempDir(), "x"))
	require.ErrorContains(t, err, "there is no folder")
}

func TestArchiveHasNoSecrets(t *testing.T) {
	t.Parallel()
	dotenv := filepath.Join(t.TempDir(), ".env")
	require.NoError(t, os.WriteFile(dotenv, []byte("# the stack\nGRAFANA_PASSWORD=g-secret\nHTTP_PORT=8080\n"), 0o600))
	secrets := NewSecrets([]string{"BACKEND_TOKEN=b/secret", "AWS_SECRET_ACCESS_KEY=aws-secret-key", "OTHER_TOKEN=yes", "PROMETHEUS_URL=https://me:p%26secret@host/", "https_proxy=me:x-secret@cache:3128"}, dotenv)
	run := folder(t, map[string]string{
		"run.json":         `{"command": ["soak", "--backend-url", "http://u:hunter2@host", "--env", "BACKEND_TOKEN=other-secret"], "port": 8080, "ok": "yes"}`,
		"k6.log":           "Authorization: Bearer b/secret\nX-Token b/secret b/secret\nGET /x?access_token=q-secret&id=5\n\"authorization\": \"Basic YTpiLXNlY3JldA==\"\n",
		"backend.log":      "g-secret, x-secret, p&secret, p%26secret, b%2Fsecret, aws-secret-key and AKIAABCDEFGHIJKLMNOP",
		"shards/a.json.gz": gzipText(t, `{"url": "http://u:hunter2@host"}`), "shards/b.json.gz": gzipText(t, `{}`), "shards/c.json.gz": "no gzip",
		".env": "BACKEND_TOKEN=b/secret", "certs/server-key.pem": "KEY",
	})
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(run, "link.json")))
	file, c := makeArchive(t, Source{Folder: run, Secrets: secrets})
	files, _ := archiveFiles(t, file)
	for name, text := range files {
		for _, secret := range []string{"hunter2", "b/secret", "b%2Fsecret", "g-secret", "x-secret", "aws-secret-key", "p&secret", "p%26secret", "q-secret", "other-secret", "YTpiLXNlY3JldA", "AKIAABCDEFGH"} {
			assert.NotContains(t, text, secret, name)
		}
	}
	require.ElementsMatch(t, []string{"run.json", "k6.log", "backend.log"}, c.Redacted)
	require.JSONEq(t, `{"command": ["soak", "--backend-url", "http://u:[redacted]@host", "--env", "BACKEND_TOKEN=[redacted]"], "port": 8080, "ok": "yes"}`, files["run.json"])
	require.Contains(t, files["k6.log"], "&id=5")
	require.Contains(t, files, "shards/b.json.gz")
	for _, name := range []string{".env", "certs/server-key.pem", "link.json", "shards/a.json.gz", "shards/c.json.gz"} {
		require.NotContains(t, files, name)
	}
	require.Contains(t, fmt.Sprint(c.Omitted), "shards/a.json.gz was left out: it contains a secret")
	require.Contains(t, fmt.Sprint(c.Omitted), "certs/server-key.pem is not a file that a run writes")

	// The page contains data of other files, encoded so that a search for secrets cannot find them. The page is left
	// out if secrets were redacted in one of these files.
	for name, hasPage := range map[string]bool{"connections.csv": false, "run.json": false, "k6.log": true} {
		_, c = makeArchive(t, Source{Folder: folder(t, map[string]string{name: "id,b/secret\n"}), Secrets: secrets})
		require.Equal(t, hasPage, !strings.Contains(fmt.Sprint(c.Omitted), "report.html has data of files in which secrets were redacted"), name)
	}
}

// A token may be equal to the text that replaces secrets.
func TestReplacementIsNotReplacedAgain(t *testing.T) {
	t.Parallel()
	for _, token := range []string{"redacted", "[redacted]"} {
		require.Equal(t, token+" "+token, NewSecrets([]string{"BACKEND_TOKEN=" + token}, "").String(token+" "+token))
	}
}

// A secret in the name of a file or in the page cannot be replaced, so no archive is made.
func TestSecretPreventsArchive(t *testing.T) {
	t.Parallel()
	const token = "0f3b9c1d5e7a48b29c6d1e0f2a3b4c5d"
	secrets := NewSecrets([]string{"SUBSCRIBE_TOKEN=" + token}, "")
	for name, file := range map[string]struct{ text, want string }{
		"client-" + token + ".log":   {"", "the name of the file client-[redacted].log contains"},
		"a-" + token + "/client.log": {"Cookie: x", "the name of the file a-[redacted]/client.log contains"},
		page:                         {"<style>/* " + token + " */</style>", "report.html would contain"},
	} {
		path := filepath.Join(t.TempDir(), "run.tar.gz")
		_, err := Make(t.Context(), Source{Folder: folder(t, map[string]string{name: file.text}), Secrets: secrets}, path)
		require.ErrorContains(t, err, file.want)
		require.ErrorContains(t, err, "the value of SUBSCRIBE_TOKEN")
		require.NotContains(t, err.Error(), token)
		require.NoFileExists(t, path)
	}
	_, c := makeArchive(t, Source{Folder: folder(t, map[string]string{token + ".pem": ""}), Secrets: secrets})
	require.Contains(t, fmt.Sprint(c.Omitted), "[redacted].pem is not a file that a run writes")
}

// Secrets are recognized by the text around them or by their form, whatever their origin.
func TestLikelySecretsAreReplaced(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"X-Api-Key: v":                                 "X-Api-Key: [redacted]",
		"  token: v # of the hub":                      "  token: [redacted] # of the hub",
		"Cookie: id=v; theme=dark":                     "Cookie: [redacted]",
		"Set-Cookie: id=v; Path=/":                     "Set-Cookie: [redacted]",
		"Authorization: ApiKey v":                      "Authorization: [redacted]",
		"Proxy-Authorization: Basic v":                 "Proxy-Authorization: [redacted]",
		`msg="GET / HTTP/1.1\r\nX-Api-Key: v\r\nA: b"`: `msg="GET / HTTP/1.1\r\nX-Api-Key: [redacted]\r\nA: b"`,
		`msg="Cookie: id=v; a=b" level=info`:           `msg="Cookie: [redacted]" level=info`,
		"map[Accept:[a] X-Auth-Token:[v] Z:[b]]":       "map[Accept:[a] X-Auth-Token:[[redacted]] Z:[b]]",
		`{"password":"ab\"cdefgh"}`:                    `{"password":"[redacted]"}`, // an escaped quote is part of the value
		`{"X-Api-Key": ["v"], "id": 5}`:                `{"X-Api-Key": ["[redacted]"], "id": 5}`,
		`"{\"token\": \"v\", \"id\": 5}"`:              `"{\"token\": \"[redacted]\", \"id\": 5}"`,
		`{'token': 'v', 'id': 5}`:                      `{'token': '[redacted]', 'id': 5}`,
		"/x?jwt=v&id=5&sig=w%3D&a=b":                   "/x?jwt=[redacted]&id=5&sig=[redacted]&a=b",
		"authorization=Basic v next":                   "authorization=[redacted] next",
		`password="v" PIN_PASSWORD=1234`:               `password="[redacted]" PIN_PASSWORD=[redacted]`,
		"got eyJhbGciOiJub25lIn0.eyJzdWIiOiJtZSJ9.":    "got [redacted]",
		"(eyJhbGciOiJub25lIn0.eyJzdWIiOiJtZSJ9.c2ln)":  "([redacted])",
	} {
		secrets := NewSecrets(nil, "")
		require.Equal(t, want, secrets.String(text))
		require.Equal(t, want, secrets.String(want), "a second replacement must change nothing")
	}
	for _, text := range []string{
		`{"token_ttl_s": 30, "auth": {"x": 1}, "authorization": null, "token": true}`, `{"net.ipv4.tcp_syncookies": "1"}`, "TOKEN_TTL=30", "token_ttl_s: 30",
		"{key:e,plots:[]}", "http://me:xxxxx@host/", "it cannot read the token: no such file", "12 sessions, key by key", "http://host:80/auth/x",
	} {
		require.Equal(t, text, NewSecrets(nil, "").String(text))
	}
}

// A token may be a common word or a number.
func TestCommonWordAsSecret(t *testing.T) {
	t.Parallel()
	for _, token := range []string{"soak", "run", "1200", "connections", "sse-soak"} {
		secrets := NewSecrets([]string{"BACKEND_TOKEN=" + token, "OTHER_PASSWORD=" + token}, "", "http://me:"+token+"@host/")
		require.Contains(t, secrets.Common, "BACKEND_TOKEN")
		evidence := `{"command": ["soak", "run"], "connections": 1200, "project": "sse-soak", `
		require.Equal(t, evidence+`"token": "[redacted]", "url": "http://me:[redacted]@host/?token=[redacted]", "env": "BACKEND_TOKEN=[redacted]"}`,
			secrets.String(evidence+strings.ReplaceAll(`"token": "XX", "url": "http://me:XX@host/?token=XX", "env": "BACKEND_TOKEN=XX"}`, "XX", token)))
	}
	for _, token := range []string{"s0ak", "so-ak", "abcdefghijkl", "1234567890"} {
		secrets := NewSecrets([]string{"BACKEND_TOKEN=" + token}, "")
		require.Empty(t, secrets.Common)
		require.Equal(t, "[redacted]", secrets.String(token))
	}
}

// Shards and the data of a page have lines of several MB. A secret is recognized by the text near it, at any position
// in the line.
func TestSecretsInLongLines(t *testing.T) {
	t.Parallel()
	filler := strings.Repeat(`{"a": "b", `, 2000)
	for _, text := range []string{`"token": "XX", "key": "XX"`, "?sig=XX", "Cookie: XX", "://me:XX@", "X-Api-Key: XX"} {
		for _, line := range []string{text, filler + text, text + `", ` + filler, filler + text + `", ` + filler + text} {
			require.Equal(t, strings.ReplaceAll(line, "XX", secret.Redacted), NewSecrets(nil, "").String(strings.ReplaceAll(line, "XX", strings.Repeat("v", 5000))))
		}
	}
}

func gzipText(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	_, err := io.WriteString(zip, text)
	require.NoError(t, err)
	require.NoError(t, zip.Close())
	return out.String()
}

type entry struct {
	tar.Header
	text string
}

// packEntries returns an archive with the entries, which need not be valid.
func packEntries(t *testing.T, entries []entry) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	files := tar.NewWriter(zip)
	for _, e := range entries {
		if e.Typeflag == 0 {
			e.Typeflag = tar.TypeReg
		}
		if e.Typeflag == tar.TypeReg {
			e.Size = int64(len(e.text))
		}
		require.NoError(t, files.WriteHeader(&e.Header))
		_, err := io.WriteString(files, e.text)
		require.NoError(t, err)
	}
	require.NoError(t, files.Close())
	require.NoError(t, zip.Close())
	return out.Bytes()
}

func entriesOf(t *testing.T, file string) (entries []entry) {
	t.Helper()
	in, err := os.Open(file)
	require.NoError(t, err)
	defer in.Close()
	zip, err := gzip.NewReader(in)
	require.NoError(t, err)
	for files := tar.NewReader(zip); ; {
		h, err := files.Next()
		if err == io.EOF {
			return entries
		}
		require.NoError(t, err)
		text, err := io.ReadAll(files)
		require.NoError(t, err)
		entries = append(entries, entry{tar.Header{Name: h.Name, Mode: h.Mode}, string(text)})
	}
}
