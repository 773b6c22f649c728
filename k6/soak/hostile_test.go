package soak

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ci"
	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/results/archive"
	"github.com/sse-soak/sse-soak/internal/run/live"
	"github.com/sse-soak/sse-soak/internal/secret"
	"github.com/sse-soak/sse-soak/internal/service/probe"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/sseclient"
)

// knownToken is the token of the environment. Its forms differ in JSON, URLs and base64.
const knownToken = "s3cr+t/T0ken=Va~ue9!"

var knownSecrets = secret.Environment([]string{"SUBSCRIBE_TOKEN=" + knownToken})

// insertToken replaces placeholders in the bytes of a service with forms of the token.
func insertToken(text string) string {
	var jsonText, urlText strings.Builder
	for _, c := range []byte(knownToken) {
		fmt.Fprintf(&jsonText, `\u%04x`, c)
		fmt.Fprintf(&urlText, "%%%02x", c)
	}
	return strings.NewReplacer("<T>", knownToken, "<J>", jsonText.String(), "<P>", urlText.String(), "<Q>", url.QueryEscape(knownToken),
		"<B>", base64.StdEncoding.EncodeToString([]byte(knownToken))).Replace(text)
}

// A hostileService holds all bytes that a service controls.
type hostileService struct {
	status   string // the status line
	header   string // further header lines
	body     string // of the stream, or of the refusal
	refusal  string // message of an error
	coding   string
	location string
}

// FuzzHostileService passes bytes of a service through a probe, a run, its reports and its archive. No output may
// contain a control character or the token.
func FuzzHostileService(f *testing.F) {
	const memory = "/dev/shm" // a run flushes its files, which takes most of the time on a disk
	if _, err := os.Stat(memory); err == nil {
		f.Setenv("TMPDIR", memory)
	}
	for _, text := range []string{
		"<T> <B> <Q> <P> <J>", "\x1b]0;title\x07\u009b31m\u202e\u2066\u00ad\ufeff\U000e0041\x9b31m", `{"seq":1,"run":"run-1.1","n":"<J>"}`,
	} {
		f.Add("HTTP/1.1 200 OK", "X-A: "+text, ": "+text+"\nid: "+text+"\nevent: "+text+"\ndata: "+text+"\n\nevent: news\ndata: "+text+"\n\n", text, text, text)
		f.Add("HTTP/1.1 200 OK", "Content-Encoding: "+text, "event: news\nid: 1\ndata: {\"run\":\"run-1.0\",\"seq\":1,\"a\":\""+text+"\"}\n\nid\nevent: "+text+"\n\n",
			"unexpected status 403 Forbidden: "+text, "gzip", "http://other/"+text)
		f.Add("HTTP/1.1 200 OK", "X\x13A: "+text, text, text, "br", "")
		f.Add("HTTP/1.1 302 "+text, "Location: http://x/"+text, text, "", "", "")
		f.Add("HTTP/1.1 403 "+text, "Retry-After: "+text, text, "", "", "")
	}
	f.Fuzz(func(t *testing.T, status, header, body, refusal, coding, location string) {
		h := &hostileService{insertToken(status), insertToken(header), insertToken(body), insertToken(refusal), insertToken(coding), insertToken(location)}
		for name, text := range h.outputs(t) {
			assert.Empty(t, knownSecrets.FindRemaining([]byte(text)), "%s contains the token: %q", name, text)
			if filepath.Ext(name) == ".gz" { // compressed data, which is not displayed
				continue
			}
			var escaped bytes.Buffer
			_, _ = io.WriteString(format.NewEscaper(&escaped), text)
			assert.True(t, strings.HasPrefix(text, escaped.String()), "%s contains a control character: %q", name, text)
		}
	})
}

// outputs returns all outputs of soak about the service, by name. A service that refuses the probe has no run.
func (h *hostileService) outputs(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	out["description"], out["probe's error"] = h.probe(t)
	if !strings.Contains(h.status, " 200") {
		return out
	}
	for _, isDescribed := range []bool{false, true} {
		h.run(t, isDescribed, out)
	}
	return out
}

// probe returns the outputs of a probe over in-memory connections.
func (h *hostileService) probe(t *testing.T) (module, output string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var open []net.Conn
		dial := func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			mu.Lock()
			defer mu.Unlock()
			open = append(open, server)
			go h.serve(server)
			return client, nil
		}
		var progress strings.Builder
		result, err := probe.Run(t.Context(), probe.Config{
			URL: "http://service.test/sub", Connect: probe.Request{Headers: []string{"Authorization: Bearer {token}"}}, SubscribeToken: knownToken,
			Streams: 1, Length: time.Second, Name: "hostile", Dial: dial, Progress: func(sentence string) { progress.WriteString(sentence + "\n") },
		})
		if err != nil {
			progress.WriteString(err.Error())
		}
		module = result.Module
		output = format.Escape(progress.String()) // as main.go does
		mu.Lock()
		defer mu.Unlock()
		for _, conn := range open {
			_ = conn.Close()
		}
	})
	return module, output
}

// serve responds to each request on a connection with the bytes of the service.
func (h *hostileService) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		if _, err := http.ReadRequest(in); err != nil {
			return
		}
		_, err := fmt.Fprintf(conn, "%s\r\nContent-Type: text/event-stream\r\n%s\r\nConnection: close\r\n\r\n%s", h.status, h.header, h.body)
		if err != nil || !strings.Contains(h.status, " 200") {
			return
		}
	}
}

// run records streams of the service, and writes verdict, reports, the page of all runs, the live page and the archive.
func (h *hostileService) run(t *testing.T, isDescribed bool, out map[string]string) {
	t.Helper()
	prefix, r := "noop ", h.record(t, isDescribed)
	if isDescribed {
		prefix = "described "
	}
	d, err := results.Create(t.TempDir(), "t")
	require.NoError(t, err)
	s := &shard.Shard{Schema: shard.Schema}
	r.fill(s)
	if isDescribed {
		s.Plan.PublishRate = 10
	}
	s.Runner = shard.Runner{
		TestID: "t", RunID: s.Plan.RunID, Index: 1, Segment: "0:1", Host: "host", State: shard.Finished, StartedUS: r.start.UnixMicro(),
		EndedUS: r.start.Add(time.Minute).UnixMicro(),
	}
	require.NoError(t, shard.Write(d.Path(filepath.Join(results.ShardsDir, shard.FileName(s.Runner))), s))
	require.NoError(t, d.WriteJSON(results.PlanFile, s.Plan))
	require.NoError(t, d.WriteJSON(results.RunFile, results.RunRecord{}))
	v, m, err := d.Judge()
	require.NoError(t, err)
	require.NoError(t, d.Report(v, m, ""))
	require.NoError(t, results.WriteHistory(filepath.Dir(string(d))))

	var text, annotations bytes.Buffer
	require.NoError(t, report.Text(format.NewEscaper(&text), report.Brief(v))) // as main.go does with standard output
	out[prefix+"text"] = text.String()
	summary := filepath.Join(t.TempDir(), "summary.md")
	t.Setenv("GITHUB_STEP_SUMMARY", summary)
	t.Setenv("GITHUB_OUTPUT", filepath.Join(filepath.Dir(summary), "outputs"))
	reporter := ci.Begin(ci.Systems{GitHub: true, JUnit: filepath.Join(filepath.Dir(summary), "junit.xml")}, format.NewEscaper(&annotations))
	reporter.SetVerdict(v, d.Path(results.PageFile))
	_ = reporter.End(errors.New(r.ledgers[0].Record().Reason), func(sentence string) { t.Error(sentence) })
	out[prefix+"annotations"] = annotations.String()

	files := &live.Files{Location: "results/t"}
	files.Show(v, m, nil)
	server, err := live.Listen("127.0.0.1:0", files, time.Hour)
	require.NoError(t, err)
	defer server.Close()
	out[prefix+"live page"] = fetch(t, server.URL())

	packed := filepath.Join(filepath.Dir(summary), "t.tar.gz")
	c, err := archive.Make(t.Context(), archive.Source{Folder: string(d), Secrets: archive.NewSecrets([]string{"SUBSCRIBE_TOKEN=" + knownToken}, "")}, packed)
	require.NoError(t, err)
	out[prefix+"archive's contents"] = fmt.Sprint(c)
	opened := filepath.Join(t.TempDir(), "opened")
	_, err = archive.Open(t.Context(), packed, opened)
	require.NoError(t, err)
	for folder, name := range map[string]string{filepath.Dir(string(d)): "results", filepath.Dir(summary): "ci", opened: "archive"} {
		collect(t, folder, prefix+name, out)
	}
}

// collect reads all files of a folder, and decompresses them if necessary.
func collect(t *testing.T, folder, prefix string, out map[string]string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.HasSuffix(path, ".tar.gz") {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if filepath.Ext(path) == ".gz" {
			z, err := gzip.NewReader(bytes.NewReader(content))
			require.NoError(t, err)
			content, err = io.ReadAll(z)
			require.NoError(t, err)
		}
		name, err := filepath.Rel(folder, path)
		out[prefix+"/"+name] = string(content)
		return err
	}))
}

func fetch(t *testing.T, url string) string {
	t.Helper()
	response, err := http.Get(url) // #nosec G107 -- of the live page
	require.NoError(t, err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(content)
}

// record feeds the bytes to two clients. The service refuses the first client at a reconnect, and the second client at
// its first request.
func (h *hostileService) record(t *testing.T, isDescribed bool) (r *recorder) {
	t.Helper()
	token := &credentials{token: knownToken, secrets: []string{knownToken}}
	var first, second *observer
	if isDescribed {
		rt, ofService := newServiceVU(t, strings.Replace(descriptionJS, `"secret"`, fmt.Sprintf("%q", knownToken), 1))
		first, second = newStream(t, rt, "d-0"), newStream(t, rt, "d-1")
		first.override, second.override = token, token
		r = ofService
	} else {
		r = newPlannedRecorder(t)
		r.credentials.Store(&credentials{secrets: []string{knownToken}})
		first, second = newObserver(t, r, "d-0"), newObserver(t, r, "d-1")
	}
	at := r.start.Add(time.Second)
	first.connecting(at)
	first.openStream(at, func(r *sseclient.Response) { r.Header.Set("X-A", h.header) })
	_ = feedBlocks(first, at.Add(time.Second), h.body) // up to the first block that the parser rejects
	first.closed(at.Add(2*time.Second), sseclient.Close{Reason: sseclient.ReasonReset, Err: errors.New(h.refusal), Retry: 0})
	first.connecting(at.Add(3 * time.Second))
	first.closed(at.Add(4*time.Second), sseclient.Close{Reason: sseclient.ReasonStatus, Status: 503, Err: errors.New("unexpected status 503: " + h.refusal), Retry: -1})
	second.connecting(at)
	second.closed(at.Add(time.Second), sseclient.Close{
		Reason: sseclient.ReasonContentType, Status: 302, Retry: -1, Err: fmt.Errorf("redirect to %q, content coding %q: %s", h.location, h.coding, h.refusal),
	})
	return r
}
