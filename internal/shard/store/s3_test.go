package store

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/fakebucket"
)

// An s3Server is an S3 server in this process, with a handler in front of it.
type s3Server struct {
	url       string
	requests  atomic.Int64
	intercept atomic.Pointer[func(w http.ResponseWriter, r *http.Request) (handled bool)]
}

func startS3(t *testing.T) *s3Server {
	t.Helper()
	s := &s3Server{}
	faker := fakebucket.New(t, "soaks")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		if intercept := s.intercept.Load(); intercept != nil && (*intercept)(w, r) {
			return
		}
		faker.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// location returns a URL of this server. The environment has its credentials; see TestMain.
func (s *s3Server) location(path string) string {
	return "s3://" + path + "?region=us-east-1&use_path_style=true&endpoint=" + s.url
}

func (s *s3Server) open(t *testing.T, path string) Store {
	t.Helper()
	b, err := Create(t.Context(), s.location(path))
	require.NoError(t, err)
	b.(*bucket).pause = time.Millisecond
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

// answer makes the given handler respond to the first n requests, or to all if n is negative.
func (s *s3Server) answer(n int64, handler http.HandlerFunc) {
	var remaining atomic.Int64
	remaining.Store(n)
	intercept := func(w http.ResponseWriter, r *http.Request) bool {
		if n >= 0 && remaining.Add(-1) < 0 {
			return false
		}
		handler(w, r)
		return true
	}
	s.intercept.Store(&intercept)
}

// refuse returns a handler that responds with an error in S3's format.
func refuse(status int, code string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		if r.Method != http.MethodHead {
			_, _ = w.Write([]byte("<Error><Code>" + code + "</Code><Message>set by the test</Message></Error>"))
		}
	}
}

func withTimeout(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func get(t *testing.T, s Store, name string) string {
	t.Helper()
	data, err := s.Get(withTimeout(t, time.Minute), name)
	require.NoError(t, err)
	return string(data)
}

func TestBucketStoresFiles(t *testing.T) {
	t.Parallel()
	server := startS3(t)
	b := server.open(t, "soaks/2026/t")
	names, err := b.Names(t.Context())
	require.NoError(t, err)
	require.Empty(t, names)
	require.NoError(t, b.Put(t.Context(), "b", []byte("one")))
	require.NoError(t, b.Put(t.Context(), "a", []byte("two")))
	require.NoError(t, b.Put(t.Context(), "b", []byte("three")), "a second write must replace the file")
	require.NoError(t, server.open(t, "soaks/2026").Put(t.Context(), "above", nil))
	require.NoError(t, server.open(t, "soaks/2026/t/below").Put(t.Context(), "c", nil))
	names, err = b.Names(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, names)
	require.Equal(t, "three", get(t, b, "b"))
	require.Equal(t, "s3://soaks/2026/t/b", b.At("b"))
	root := server.open(t, "soaks")
	require.NoError(t, root.Put(t.Context(), "at-the-root", []byte("x")))
	require.Equal(t, "x", get(t, root, "at-the-root"))
}

func TestLargeFileIsUploadedInParts(t *testing.T) {
	t.Parallel()
	server := startS3(t)
	b := server.open(t, "soaks/t")
	data := bytes.Repeat([]byte("0123456789abcdef"), 17<<20/16)
	require.NoError(t, b.Put(t.Context(), "large", data))
	require.EqualValues(t, 6, server.requests.Load(), "an upload must consist of its start, four parts and its end")
	require.Equal(t, string(data), get(t, b, "large"))
}

func TestTransientErrorsOfABucketAreRetried(t *testing.T) {
	t.Parallel()
	hangUp := func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	}
	for name, c := range map[string]struct {
		times   int64
		handler http.HandlerFunc
	}{
		"500":             {4, refuse(500, "InternalError")},
		"503 slow down":   {4, refuse(503, "SlowDown")},
		"429":             {4, refuse(429, "TooManyRequests")},
		"request timeout": {4, refuse(400, "RequestTimeout")},
		"no XML":          {4, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(502) }},
		"hangs up":        {4, hangUp},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := startS3(t)
			b := server.open(t, "soaks/t")
			server.answer(c.times, c.handler)
			require.NoError(t, b.Put(withTimeout(t, time.Minute), "x", []byte("whole")))
			require.Greater(t, server.requests.Load(), c.times)
			require.Equal(t, "whole", get(t, b, "x"))
			server.answer(c.times, c.handler)
			names, err := b.Names(withTimeout(t, time.Minute))
			require.NoError(t, err)
			require.Equal(t, []string{"x"}, names, "a list must be retried if the connection ends early")
		})
	}
}

func TestRetriesOfABucketAreReported(t *testing.T) {
	t.Parallel()
	server := startS3(t)
	b := server.open(t, "soaks/t")
	server.answer(2, refuse(503, "SlowDown"))
	var sentences []string
	require.NoError(t, b.Put(OnRetry(withTimeout(t, time.Minute), func(s string) { sentences = append(sentences, s) }), "x", nil))
	require.Equal(t, []string{
		"write s3://soaks/t/x: SlowDown: set by the test; trying again", "write s3://soaks/t/x: SlowDown: set by the test; trying again",
	}, sentences)

	none, err := Create(t.Context(), "s3://soaks/t?region=us-east-1&use_path_style=true&endpoint=http://127.0.0.1:1")
	require.NoError(t, err)
	defer none.Close()
	ctx, cancel := context.WithCancel(t.Context())
	_, err = none.Names(OnRetry(ctx, func(s string) {
		require.Contains(t, s, "list s3://soaks/t/: dial tcp 127.0.0.1:1: connect: connection refused; trying again")
		cancel()
	}))
	require.ErrorContains(t, err, "connection refused", "the error must have the cause")
}

func TestHugeObjectsAreRejected(t *testing.T) {
	t.Parallel()
	server := startS3(t)
	b := server.open(t, "soaks/t")
	server.answer(-1, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "99000000000")
		w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
		_, _ = w.Write([]byte("who"))
	})
	_, err := b.Get(withTimeout(t, time.Minute), "x")
	require.ErrorContains(t, err, "read s3://soaks/t/x: file must have at most 2147483648 bytes, got 99000000000")
	require.EqualValues(t, 1, server.requests.Load())
}

func TestPermanentErrorsOfABucketAreNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		bucket  string
		handler http.HandlerFunc
		want    string
	}{
		"access denied":     {"soaks", refuse(403, "AccessDenied"), "access denied; grant the credentials s3:PutObject"},
		"no such bucket":    {"none", nil, "the bucket does not exist; create it, or correct its name and region"},
		"expired":           {"soaks", refuse(400, "ExpiredToken"), "the server does not accept the credentials; renew"},
		"another signature": {"soaks", refuse(403, "SignatureDoesNotMatch"), "the server does not accept the credentials; renew"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := startS3(t)
			b := server.open(t, c.bucket+"/t")
			if c.handler != nil {
				server.answer(-1, c.handler)
			}
			err := b.Put(withTimeout(t, time.Minute), "x", []byte("whole"))
			require.ErrorContains(t, err, "write s3://"+c.bucket+"/t/x: "+c.want)
			require.NotContains(t, err.Error(), "\n")
			require.EqualValues(t, 1, server.requests.Load(), "a permanent error must not be retried")
			_, err = b.Names(withTimeout(t, time.Minute))
			require.ErrorContains(t, err, "list s3://"+c.bucket+"/t/: "+c.want)
			_, err = b.Get(withTimeout(t, time.Minute), "x")
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestUnresponsiveBucketEndsWithTheContext(t *testing.T) {
	t.Parallel()
	server := startS3(t)
	b := server.open(t, "soaks/t")
	server.answer(-1, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	err := b.Put(withTimeout(t, 500*time.Millisecond), "x", nil)
	require.ErrorContains(t, err, "write s3://soaks/t/x: ")
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestEndOfTheContextKeepsTheServersReason(t *testing.T) {
	t.Parallel()
	server := startS3(t)
	b := server.open(t, "soaks/t")
	ctx, cancel := context.WithCancel(withTimeout(t, time.Minute))
	server.answer(-1, func(w http.ResponseWriter, r *http.Request) {
		if server.requests.Load() > 3 {
			cancel()
		}
		refuse(500, "InternalError")(w, r)
	})
	require.ErrorContains(t, b.Put(ctx, "x", nil), "InternalError")
}

func TestSlowBucketReceivesTheCompleteFile(t *testing.T) {
	t.Parallel()
	server := startS3(t)
	b := server.open(t, "soaks/t")
	slow := func(_ http.ResponseWriter, r *http.Request) bool {
		select {
		case <-r.Context().Done():
		case <-time.After(200 * time.Millisecond): // longer than the pause between attempts
		}
		return false
	}
	server.intercept.Store(&slow)
	require.NoError(t, b.Put(withTimeout(t, time.Minute), "x", []byte("whole")))
	require.EqualValues(t, 1, server.requests.Load(), "a slow response must not be retried")
	require.Equal(t, "whole", get(t, b, "x"))
}

func TestInterruptedReadIsRetried(t *testing.T) {
	t.Parallel()
	server := startS3(t)
	b := server.open(t, "soaks/t")
	require.NoError(t, b.Put(withTimeout(t, time.Minute), "x", []byte("whole")))
	server.answer(2, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
		_, _ = w.Write([]byte("who"))
	})
	require.Equal(t, "whole", get(t, b, "x"))
	_, err := b.Get(withTimeout(t, time.Minute), "y")
	require.ErrorContains(t, err, "read s3://soaks/t/y: ")
}
