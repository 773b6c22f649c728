package target

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/process"
)

func serve(t *testing.T, handler http.HandlerFunc) *Target {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return Remote(s.URL, "secret")
}

func TestServerLedger(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		status    int
		kind      string
		evicted   string
		hasLedger bool
		problem   string
		length    string // header Content-Length; "": the length of the body
	}{
		{"truncated", 200, "application/x-ndjson", "", false, "read the backend's ledger", "100"},
		{"complete", 200, "application/x-ndjson", "", true, "", ""},
		{"with a charset", 200, "application/x-ndjson; charset=utf-8", "0", true, "", ""},
		{"partial", 200, "application/x-ndjson", "17", true, "because it exceeded LEDGER_KEEP (removed ids: 17)", ""},
		{"a page of a foreign service", 200, "text/html", "", false, "", ""},
		{"missing", 404, "application/problem+json", "", false, "", ""},
		{"a broken service", 500, "application/x-ndjson", "", false, "", ""},
		{"unauthorized", 401, "application/problem+json", "", false, "set BACKEND_TOKEN", ""},
		{"forbidden", 403, "application/problem+json", "", false, "set BACKEND_TOKEN", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			target := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/event/ledger" || r.URL.Query().Get("prefix") != "a&b" || r.Header.Get("Authorization") != "Bearer secret" {
					w.WriteHeader(http.StatusTeapot)
					return
				}
				w.Header().Set("Content-Type", c.kind)
				w.Header().Set("X-Ledger-Evicted", c.evicted)
				if c.length != "" {
					w.Header().Set("Content-Length", c.length)
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, "{}\n")
			})
			var text strings.Builder
			hasLedger, err := target.Ledger(t.Context(), "a&b", &text)
			require.Equal(t, c.hasLedger, hasLedger)
			if c.problem == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.problem)
			}
			require.Equal(t, c.hasLedger || c.length != "", text.String() == "{}\n")
		})
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	answer := func(text string) *Target {
		return serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, text)
		})
	}
	endless := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	require.NoError(t, serve(t, endless).Probe(t.Context(), time.Second), "the endless body must not be read")
	require.Empty(t, serve(t, endless).Version(t.Context()))
	require.NoError(t, serve(t, http.NotFound).Probe(t.Context(), time.Second), "a foreign service need not know /healthz")
	redirectLoop := func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }
	require.NoError(t, serve(t, redirectLoop).Probe(t.Context(), time.Second), "a redirect must count as a response")
	for _, foreign := range []string{"", "ok", "{}", "[1]", `{"noop_interval_s":"x"}`, strings.Repeat(" ", 1<<17)} {
		require.NoError(t, answer(foreign).Probe(t.Context(), time.Second), foreign[:min(len(foreign), 9)])
	}
	require.NoError(t, answer(`{"noop_interval_s":0.25}`).Probe(t.Context(), 250*time.Millisecond))
	require.ErrorContains(t, answer(`{"noop_interval_s":15}`).Probe(t.Context(), time.Second), "sends a noop every 15s, but the plan has 1s")
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	require.ErrorContains(t, Remote(s.URL, "").Probe(t.Context(), time.Second), "connect to "+strings.TrimPrefix(s.URL, "http://"))
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	page, ok := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "x 1\n") }).Metrics(t.Context())
	require.True(t, ok)
	text, err := io.ReadAll(page)
	require.NoError(t, err)
	require.NoError(t, page.Close())
	require.Equal(t, "x 1\n", string(text))
	for _, withoutMetrics := range []*Target{serve(t, http.NotFound), Remote("http://127.0.0.1:1", "")} {
		_, ok = withoutMetrics.Metrics(t.Context())
		require.False(t, ok)
	}
}

func TestVersionOfNginx(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"nginx version: nginx/1.22.1\n": "nginx/1.22.1", "nginx version: nginx/1.22.1 (Ubuntu)": "nginx/1.22.1", "hello": "nginx"} {
		require.Equal(t, want, versionOf(text))
	}
}

// If the runners do not verify certificates, an untrusted certificate does not prevent the run.
func TestCertificateIsVerifiedAsByRunners(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	require.ErrorContains(t, Remote(s.URL, "").Probe(t.Context(), 0), "untrusted certificate (x509: certificate signed by unknown authority")
	t.Setenv("K6_INSECURE_SKIP_TLS_VERIFY", "true")
	require.NoError(t, Remote(s.URL, "").Probe(t.Context(), 0))
}

func TestTargetsThatNeedNginxAreRejected(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]LocalConfig{
		"several backends require nginx":                                   {Backends: 2, NoNginx: true},
		"HTTP/2 requires nginx in front of the backend; remove --no-nginx": {RequireHTTP2: true, NoNginx: true},
	} {
		c.Backend = "/nonexistent"
		_, err := StartLocal(t.Context(), c)
		require.ErrorContains(t, err, want)
	}
}

// The error distinguishes a stopped run from a target that does not start.
func TestStoppedStartIsCanceled(t *testing.T) {
	t.Parallel()
	s := newSupervisor("the backend", func(bool) (*process.Process, error) {
		return process.Start(process.Spec{Name: "script", Path: "/bin/sh", Args: []string{"-c", "exec sleep 60"}, Log: filepath.Join(t.TempDir(), "log"), OrphanSignal: syscall.SIGKILL})
	})
	require.NoError(t, s.start(false))
	defer s.stop(context.Background(), time.Second)
	ctx, stop := context.WithCancel(t.Context())
	service := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		stop()
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	require.ErrorIs(t, new(Local).await(ctx, s, http.DefaultClient, service.URL), context.Canceled)
}

func TestCrashNamesTheOutcomeOfTheRestart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		before  int // crashes before the one of the test
		restart error
		want    string
	}{
		{name: "restarted", want: " and was restarted"},
		{name: "failed", restart: errors.New("no such file"), want: " and could not be restarted: no such file"},
		{name: "too many crashes", before: maxCrashes, want: " and was not restarted after 11 crashes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			log := filepath.Join(t.TempDir(), "log")
			s := newSupervisor("the backend", func(restart bool) (*process.Process, error) {
				script := "exit 3"
				if restart {
					if script = "exec sleep 60"; c.restart != nil {
						return nil, c.restart
					}
				}
				return process.Start(process.Spec{Name: "script", Path: "/bin/sh", Args: []string{"-c", script}, Log: log, OrphanSignal: syscall.SIGKILL})
			})
			s.crashes = make([]Crash, c.before)
			require.NoError(t, s.start(false))
			crash := func() string {
				if all := s.crashList(); len(all) > c.before {
					return all[c.before].Text
				}
				return ""
			}
			const died = " (exit status 3)"
			require.Eventually(t, func() bool { return strings.HasSuffix(crash(), died+c.want) }, time.Minute, time.Millisecond)
			s.stop(context.Background(), time.Second)
			require.Len(t, s.crashList(), c.before+1)
		})
	}
}

// The workers of nginx survive its killed master, and hold its port.
func TestCrashKillsTheChildrenOfTheProcess(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	var group *process.Process
	s := newSupervisor("nginx", func(restart bool) (p *process.Process, err error) {
		if restart {
			return nil, errors.New("not restarted")
		}
		group, err = process.Start(process.Spec{Name: "script", Path: "/bin/sh", Args: []string{"-c", "sleep 60 & kill -KILL $$"}, Log: log})
		return group, err
	})
	require.NoError(t, s.start(false))
	require.Eventually(t, func() bool {
		all := s.crashList()
		return len(all) == 1 && strings.HasSuffix(all[0].Text, "not restarted")
	}, time.Minute, time.Millisecond)
	require.Eventually(t, func() bool { return !group.IsGroupRunning() }, 10*time.Second, time.Millisecond)
	s.stop(context.Background(), time.Second)
}

// A soak process that was killed cannot remove its folder.
func TestNextTargetRemovesOrphanedFolders(t *testing.T) {
	parent := t.TempDir()
	t.Setenv("TMPDIR", parent)
	orphan, err := newFolder()
	require.NoError(t, err)
	require.NoError(t, orphan.lock.Close()) // as the kernel does for a process that was killed
	require.NoError(t, os.WriteFile(filepath.Join(orphan.path, "nginx.conf"), nil, 0o600))

	foreign := filepath.Join(parent, "soak-notes")
	require.NoError(t, os.Mkdir(foreign, 0o700))
	first, err := newFolder()
	require.NoError(t, err)
	require.NoDirExists(t, orphan.path)

	second, err := newFolder()
	require.NoError(t, err)
	require.DirExists(t, first.path, "a folder whose owner still runs must stay")
	require.DirExists(t, foreign, "the folder of another program must stay")
	second.remove()
	first.remove()
	entries, err := os.ReadDir(parent)
	require.NoError(t, err)
	require.Len(t, entries, 1, "only the folder of the other program must remain")
}

// On macOS, 127.0.0.1 is the only loopback address. In this test, addresses with a nonexistent zone stand for the
// missing ones.
func TestFreePortUsesALocalAddress(t *testing.T) {
	t.Parallel()
	address, err := freeAddressOf("fe80::1%none", "127.0.0.1")
	require.NoError(t, err)
	require.Regexp(t, `^127\.0\.0\.1:\d+$`, address)
	_, err = freeAddressOf("fe80::1%none", "fe80::2%none")
	require.ErrorContains(t, err, "find a free port")
}
