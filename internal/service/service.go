package service

import (
	"cmp"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Service is a description, checked and compiled.
type Service struct {
	Name string
	// HasToken and HasURL: the module has the functions token() and url(n). They are JavaScript, and run once per
	// attempt to connect: token() gives Values.Token, url(n) the URL of stream n in place of Connect.URL.
	HasToken, HasURL bool
	// TokenVariable is the environment variable that Values.Token is read from; "" if token is a function or missing.
	TokenVariable string

	Connect Request // of a stream; its URL is empty where HasURL
	// MaxEventSize limits a line, and the data of an event, in bytes; 0: 1 MiB.
	MaxEventSize int
	Then         *Then // the second request that a stream needs; nil for none

	HeartbeatEvery time.Duration // heartbeats are so far apart at most; 0 where the description does not say
	Message        Message
	End            End
	Resume         Resume
	Publish        *Request // nil: nothing publishes

	heartbeat, gap matcher
	client         extractor // {client}, of clientPaths
	resumeID       extractor // Reading.ID
	paths          [][]segment
	clientPaths    [][]segment
	hash           string
	source         []byte // the description
}

// Request is one HTTP request as templates.
type Request struct {
	Method  string
	URL     Template
	Headers []Header
	Body    Template
	// OK are the statuses that confirm it; of the request of a stream: 200.
	OK []int
}

// Variable is the environment variable that holds the token of a trial: the one that token names, or SUBSCRIBE_TOKEN.
func (s *Service) Variable() string { return cmp.Or(s.TokenVariable, "SUBSCRIBE_TOKEN") }

// Route is the method and the path of the request with its placeholders, such as "GET /event/connect". It names the
// request in metrics and reports. It is "" of no request; url(n) is a path that only the function knows.
func (r *Request) Route() string {
	if r == nil {
		return ""
	}
	path, _, _ := strings.Cut(r.URL.String(), "?")
	if path == "" {
		path = "url(n)"
	}
	return r.Method + " " + strings.TrimPrefix(path, "{base}")
}

// Accepts says whether a status confirms the request.
func (r *Request) Accepts(status int) bool {
	return slices.Contains(r.OK, status)
}

// Marks reports whether messages or requests carry the marker of the run.
func (s *Service) Marks() bool {
	if s.Message.Marked || s.Connect.Uses(Run) {
		return true
	}
	return s.Publish != nil && s.Publish.Uses(Run) || s.End.Request != nil && s.End.Request.Uses(Run) || s.Then != nil && s.Then.Uses(Run)
}

// Uses says that the request has that placeholder anywhere.
func (r *Request) Uses(f Field) bool {
	return r.URL.Uses(f) || r.Body.Uses(f) || slices.ContainsFunc(r.Headers, func(h Header) bool { return h.Value.Uses(f) })
}

// FilledHeaders yields name and value of each header that is sent.
func (r *Request) FilledHeaders(v *Values) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for _, h := range r.Headers {
			if !h.Omitted(v) && !yield(h.Name, string(h.Value.Append(nil, v))) {
				return
			}
		}
	}
}

// Header is a header of a request.
type Header struct {
	Name  string // as the description has it
	Value Template
}

// Omitted says that the header is left out: it carries a token, and there is none.
func (h Header) Omitted(v *Values) bool { return v.Token == "" && h.Value.Uses(Token) }

// Then is a request that a stream needs before it brings anything: it is sent at the first block with Event,
// with the value that [Service.Client] finds in that block.
type Then struct {
	Event string
	Request
}

// Message says what a message is.
type Message struct {
	Noun      string // what reports call a message: message or noop
	Unchecked bool   // messages are not checked by number, interval or publisher
	Numbered  bool   // there is a number in it
	Marked    bool   // there is the run's marker in it
	Timed     bool   // there is the time in it at which it was sent
	Summed    bool   // there is a checksum in it, of marker, number and time
	// PerTopic: the streams of a topic bring the same numbers. Otherwise each stream has numbers of its own,
	// which go on when it connects again.
	PerTopic bool
	// AnyOrder and AtLeastOnce: the service does not promise the order in which messages were published, or
	// may bring a message twice. Neither is a finding then.
	AnyOrder, AtLeastOnce bool
	// Interval is the time after which the next message is due, 0 where none is due by the clock.
	Interval time.Duration

	event                  []string // nil: any
	data                   *string
	seq, marker, sent, sum extractor
}

// Data returns the data that each message has; "" if the description has no message.data.
func (m *Message) Data() string {
	if m.data == nil {
		return ""
	}
	return *m.data
}

// Ending says who ends a stream.
type Ending int

// The client ends a stream by closing it, by a request, or the server does after a lifetime.
const (
	ByClient Ending = iota
	ByRequest
	ByServer
)

// End says how a stream ends.
type End struct {
	By      Ending
	Request *Request // of ByRequest
	// Shortest and Longest are the lifetime of a stream with ByServer. The client may end it earlier.
	Shortest, Longest time.Duration
}

// Resume says how a stream goes on after it was cut.
type Resume struct {
	Header bool   // by Last-Event-ID
	Query  string // by the parameter of this name in the URL; "" for none
	// GapHeader and GapValue are a header of the response that says that messages were missed; "" for none. GapValue may be
	// AnotherID.
	GapHeader, GapValue string
	// TakesID: what is sent is not the id: field, but Reading.ID of the last message.
	TakesID bool
}

// AnotherID is the GapValue of a service that names an id to go on behind: any other than the one that was asked for is a gap.
const AnotherID = "{other}"

// Missed says whether a header of the response to a client that asked to go on behind an id says that messages are missing.
func (r *Resume) Missed(header http.Header, asked []byte) bool {
	if r.GapHeader == "" {
		return false
	}
	said := strings.TrimSpace(header.Get(r.GapHeader))
	if r.GapValue == AnotherID {
		return said != "" && len(asked) > 0 && said != string(asked)
	}
	return strings.EqualFold(said, r.GapValue)
}

// Resumes says whether a stream goes on behind the last message of the one before.
func (r *Resume) Resumes() bool { return r.Header || r.Query != "" }

// String is by what a client says where it was.
func (r *Resume) String() string {
	switch {
	case r.Header:
		return "Last-Event-ID"
	case r.Query != "":
		return "the parameter " + r.Query
	}
	return "none"
}

// Gap is how the service says that messages are missing, in words; "" where the description does not say.
func (s *Service) Gap() string {
	m := &s.gap
	for _, by := range []struct {
		name string
		text *string
	}{{"event", m.event}, {"data", m.data}, {"comment", m.comment}} {
		if by.text != nil {
			return fmt.Sprintf("a block with the %s %q", by.name, *by.text)
		}
	}
	switch {
	case m.onlyComments:
		return "a comment"
	case s.Resume.GapValue == AnotherID:
		return fmt.Sprintf("the header %s with another id than was asked for", s.Resume.GapHeader)
	case s.Resume.GapHeader != "":
		return fmt.Sprintf("the header %s: %s", s.Resume.GapHeader, s.Resume.GapValue)
	}
	return ""
}

// Hash is the SHA-256 of the description in hex: the same for any order of fields and any white space.
func (s *Service) Hash() string { return s.hash }
