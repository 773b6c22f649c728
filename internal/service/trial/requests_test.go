package trial

import (
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// Only a script can call functions, so the trial opens no stream.
func TestFunctionsAreNotTried(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		config  Config
		replace []string
		want    string
	}{
		{Config{}, []string{`"token":true`, `"token":true,"url":true`, `"url":"{base}/sub/{topic}",`, ``}, "url(n) is a function: no stream was opened before the load"},
		{Config{CustomToken: true}, nil, "token() does not return SUBSCRIBE_TOKEN: no stream was opened before the load"},
	} {
		h := new(fakeservice.Hub)
		var notes []string
		c.config.Note = func(s string) { notes = append(notes, s) }
		require.NoError(t, runTrial(t, h, c.config, c.replace...))
		require.Equal(t, []string{c.want}, notes)
		opened, _ := h.StreamCounts()
		require.Zero(t, opened)
	}
}

// A service may echo the request.
func TestTrialHidesATokenInTheResponse(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"refused": func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "who is "+r.Header.Get("Authorization")+"?", http.StatusUnauthorized)
		},
		"in a message": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte("data: " + strings.Repeat("x", 140) + r.Header.Get("Authorization") + "\n\n"))
			_ = http.NewResponseController(w).Flush()
			if r.Method == http.MethodGet {
				<-r.Context().Done()
			}
		},
	} {
		err := runTrial(t, handler, Config{SubscribeToken: "a-subscriber", PublishToken: "a-publisher"})
		require.ErrorContains(t, err, "{token}", name)
		require.NotContains(t, err.Error(), "a-sub", name)
		require.NotContains(t, err.Error(), "a-pub", name)
	}
}

// A trial, like a run, does not send the token to another origin.
func TestTrialFollowsNoRedirectToAnotherOrigin(t *testing.T) {
	t.Parallel()
	hub := new(fakeservice.Hub)
	var got []http.Header // headers of requests to the other origin
	server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Host == "other.test":
			got = append(got, r.Header)
		case r.Method == http.MethodGet:
			http.Redirect(w, r, "http://other.test"+r.URL.Path, http.StatusFound)
			return
		}
		hub.ServeHTTP(w, r)
	})
	replace := []string{`/sub/{topic}","headers":{`, `/sub/{topic}?access_token={token}","headers":{"X-Api-Key":"{token}",`}
	require.EqualError(t, runTrial(t, server, Config{SubscribeToken: "s3cret"}, replace...),
		"connect.url: GET "+base+"/sub/soak-topic-0?…: follow the redirect (status 302): http://other.test is another origin; pass --follow-redirects, or set followRedirects in a script")
	require.Empty(t, got)
	require.NoError(t, runTrial(t, server, Config{SubscribeToken: "s3cret", FollowRedirects: true}, replace...))
	require.NotEmpty(t, got)
	for _, header := range got {
		require.Empty(t, header["Referer"])
		require.Empty(t, header["X-Api-Key"])
		require.Empty(t, header["Authorization"])
	}
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	s, err := service.Parse([]byte(`{"name":"x","connect":{"method":"POST","url":"{base}/","body":"{prompt}"},
		"message":{"content":"json:$.text"},"end":{"by":"event","done":{"event":"end"},"failed":{"event":"error"}}}`))
	require.NoError(t, err)
	for body, want := range map[string]struct{ failure, note string }{
		"data: {\"text\":\"a\"}\n\nevent: end\ndata: {}\n\n":   {},
		"data: {\"text\":\"a\"}\n\nevent: error\ndata: {}\n\n": {},
		"data: {\"text\":\"a\"}\n\n":                           {"", `had no terminal event (end.done is {"event":"end"}): the stream ended `},
		"data: {\"txt\":\"a\"}\n\nevent: end\ndata: {}\n\n":    {`message.content: the response had no content (message.content is "json:$.text"): 2 blocks arrived`, ""},
		"": {`message.content: the response had no content (message.content is "json:$.text"): nothing arrived, and the stream ended `, ""},
		"data: " + strings.Repeat("a", 1<<20+1) + "\n\n": {`; set connect.maxEventSize to a larger value`, ""},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte(body))
		}))
		note := ""
		err := Answer(t.Context(), Config{Service: s, Base: server.URL, ID: "t", Prompt: "hi", Patience: 10 * time.Second, Note: func(text string) { note = text }})
		server.Close()
		if want.failure == "" {
			require.NoError(t, err, body)
		} else {
			require.ErrorContains(t, err, want.failure)
		}
		if want.note == "" {
			require.Empty(t, note, body)
		} else {
			require.Contains(t, note, want.note)
		}
	}
}

// The publisher of a run supports only HTTP/1.1, so the trial must not publish over HTTP/2.
func TestTrialRequiresHTTP1ToPublish(t *testing.T) {
	t.Setenv("K6_INSECURE_SKIP_TLS_VERIFY", "true")
	for onlyHTTP2, want := range map[bool]string{false: "", true: "; a run publishes over HTTP/1.1, so make the service accept HTTP/1.1 too"} {
		s := httptest.NewUnstartedServer(&fakeservice.Hub{})
		s.EnableHTTP2 = true
		s.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			if onlyHTTP2 && !slices.Contains(hello.SupportedProtos, "h2") {
				return nil, errors.New("HTTP/2 only")
			}
			return nil, nil //nolint:nilnil // the configuration of the server
		}}
		s.StartTLS()
		t.Cleanup(s.Close)
		err := try(t, Config{Base: s.URL})
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, "publish.url: POST ")
		require.ErrorContains(t, err, want)
	}
}
