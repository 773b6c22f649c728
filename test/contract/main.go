// Command contract makes internal/sseclient testable with LaunchDarkly's sse-contract-tests. It implements the service
// protocol that docs/service_spec.md of that repository defines. CONTRIBUTING.md has the commands.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// capabilities are the optional protocol features that the client supports.
var capabilities = []string{
	"bom", "comments", "headers", "last-event-id", "post", "read-timeout", "report", "restart", "server-directed-shutdown-request",
}

type creation struct {
	StreamURL, CallbackURL, LastEventID, Method, Body string
	InitialDelayMS, ReadTimeoutMS                     int64
	Headers                                           map[string]string
}

type report struct {
	Kind    string `json:"kind"`
	Event   *event `json:"event,omitempty"`
	Comment string `json:"comment,omitempty"`
	Error   string `json:"error,omitempty"`
}

type event struct {
	Type string `json:"type"`
	Data string `json:"data"`
	ID   string `json:"id"`
}

type service struct {
	group   *sseclient.Group
	mu      sync.Mutex
	streams map[string]*sseclient.Stream
}

var client = sseclient.Client{Dial: new(net.Dialer).DialContext, UserAgent: "sse-soak"}

func main() {
	address := "127.0.0.1:8000"
	if len(os.Args) > 1 {
		address = os.Args[1]
	}
	s := &service{group: client.Group(context.Background()), streams: map[string]*sseclient.Stream{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string][]string{"capabilities": capabilities})
	})
	mux.HandleFunc("DELETE /{$}", func(http.ResponseWriter, *http.Request) { os.Exit(0) })
	mux.HandleFunc("POST /{$}", s.create)
	mux.HandleFunc("POST /{id}", s.command)
	mux.HandleFunc("DELETE /{id}", s.stop)
	log.Fatal((&http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: time.Minute}).ListenAndServe())
}

func (s *service) create(w http.ResponseWriter, r *http.Request) {
	var c creation
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	header := http.Header{}
	for name, value := range c.Headers {
		header.Set(name, value)
	}
	options := &sseclient.Options{
		ConnectTimeout: sseclient.DefaultConnectTimeout, IdleTimeout: time.Duration(c.ReadTimeoutMS) * time.Millisecond,
		Reconnect: sseclient.ReconnectAlways, LastEventID: c.LastEventID, MaxEventSize: 16 << 20, MaxRedirects: 10, FollowRedirects: true,
		ReconnectDelay: cmp.Or(time.Duration(c.InitialDelayMS)*time.Millisecond, sseclient.DefaultReconnectDelay),
	}
	stream := s.group.Add(options, callbacks(c, header), nil)
	s.mu.Lock()
	id := strconv.Itoa(len(s.streams) + 1)
	s.streams[id] = stream
	s.mu.Unlock()
	stream.Start()
	w.Header().Set("Location", "/"+id)
	w.WriteHeader(http.StatusCreated)
}

// callbacks returns callbacks that post numbered reports to the harness, in order.
func callbacks(c creation, header http.Header) *sseclient.Callbacks {
	reports := make(chan report, 1000)
	go func() {
		count := 0
		for r := range reports {
			count++
			body, _ := json.Marshal(r)
			response, err := http.Post(fmt.Sprintf("%s/%d", c.CallbackURL, count), "application/json", bytes.NewReader(body))
			if err != nil {
				log.Print(err)
				continue
			}
			_ = response.Body.Close()
		}
	}()
	return &sseclient.Callbacks{
		Request: func(*sseclient.Stream) sseclient.Request {
			return sseclient.Request{URL: c.StreamURL, Method: c.Method, Header: header, Body: c.Body}
		},
		Event: func(_ *sseclient.Stream, _ time.Time, e *eventstream.Event) {
			reports <- report{Kind: "event", Event: &event{cmp.Or(eventstream.Text(e.Name), "message"), eventstream.Text(e.Data), eventstream.Text(e.ID)}}
		},
		Block: func(*sseclient.Stream, time.Time, *eventstream.Block) {},
		Comment: func(_ *sseclient.Stream, _ time.Time, text []byte) {
			reports <- report{Kind: "comment", Comment: eventstream.Text(text)}
		},
		Closed: func(_ *sseclient.Stream, _ time.Time, end sseclient.Close) {
			if end.Reason != sseclient.ReasonClient && end.Reason != sseclient.ReasonCut {
				reports <- report{Kind: "error", Error: end.Message()}
			}
		},
		Ended: func(*sseclient.Stream) { close(reports) },
	}
}

func (s *service) find(r *http.Request) *sseclient.Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams[r.PathValue("id")]
}

func (s *service) command(w http.ResponseWriter, r *http.Request) {
	var body struct{ Command string }
	err, stream := json.NewDecoder(r.Body).Decode(&body), s.find(r)
	switch {
	case stream == nil:
		http.NotFound(w, r)
	case err != nil || body.Command != "restart":
		http.Error(w, "the command must be restart", http.StatusBadRequest)
	default:
		stream.Drop(true)
	}
}

func (s *service) stop(w http.ResponseWriter, r *http.Request) {
	stream := s.find(r)
	if stream == nil {
		http.NotFound(w, r)
		return
	}
	stream.Stop(sseclient.ReasonClient)
}
