package service

import (
	"cmp"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// A Service is a description, checked and compiled.
type Service struct {
	Name string
	// HasToken, HasURL and HasBody report whether the module has the functions token(), url(n) and body(n). They run in JavaScript,
	// once per attempt to connect: token() returns Values.Token, the others URL and body of stream n instead of those of Connect.
	HasToken, HasURL, HasBody bool
	// TokenVariable is the environment variable that Values.Token is read from; "" if token is a function or missing.
	TokenVariable string

	Connect Request // of a stream; its URL is empty with HasURL
	// MaxEventSize limits a line, and the data of an event, in bytes; 0: 1 MiB.
	MaxEventSize  int
	SecondRequest *SecondRequest // the second request that a stream needs; nil for none

	HeartbeatEvery time.Duration // longest time between two heartbeats; 0: not described
	Message        Message
	End            End
	Resume         Resume
	Finite         *Finite  // nil: streams do not end with a terminal event
	Publish        *Request // nil: the run cannot publish to the service

	heartbeat, gap matcher
	client         extractor // {client}, of clientPaths
	clientHeader   string    // {client}, if it is a header of the response
	resumeID       extractor // Reading.ID
	paths          [][]segment
	branches       []branch // of paths
	clientPaths    [][]segment
	hash           string
	source         []byte // the description
}

// A Request is an HTTP request as templates.
type Request struct {
	Method  string
	URL     Template
	Headers []Header
	Body    Template
	// OK lists the statuses that confirm the request; 200 for the request of a stream.
	OK []int
}

// Variable returns the environment variable that holds the token of a trial: the one that token names, or SUBSCRIBE_TOKEN.
func (s *Service) Variable() string { return cmp.Or(s.TokenVariable, "SUBSCRIBE_TOKEN") }

// Route returns the method and the path of the request with its placeholders, such as "GET /event/connect". It names the request
// in metrics and reports. It is "" for no request; the path is url(n) if that function returns it.
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

// Accepts reports whether a status confirms the request.
func (r *Request) Accepts(status int) bool {
	return slices.Contains(r.OK, status)
}

// Marks reports whether messages or requests carry the marker of the run.
func (s *Service) Marks() bool {
	if s.Message.Marked || s.Connect.Uses(Run) {
		return true
	}
	return s.Publish != nil && s.Publish.Uses(Run) || s.End.Request != nil && s.End.Request.Uses(Run) || s.SecondRequest != nil && s.SecondRequest.Uses(Run)
}

// Uses reports whether the request has a placeholder.
func (r *Request) Uses(f Field) bool {
	return r.URL.Uses(f) || r.Body.Uses(f) || slices.ContainsFunc(r.Headers, func(h Header) bool { return h.Value.Uses(f) })
}

// FilledHeaders yields the name and value of each header that is sent.
func (r *Request) FilledHeaders(v *Values) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for _, h := range r.Headers {
			if !h.Omitted(v) && !yield(h.Name, string(h.Value.Append(nil, v))) {
				return
			}
		}
	}
}

// A Header is a header of a request.
type Header struct {
	Name  string // as the description has it
	Value Template
}

// Omitted reports whether the header is not sent: it carries a token or the value of an earlier response, and there is none.
func (h Header) Omitted(v *Values) bool {
	return v.Token == "" && h.Value.Uses(Token) || v.Client == "" && h.Value.Uses(Client)
}

// A SecondRequest is a request that a stream needs before messages arrive. It is sent at the first block with Event,
// with the value that [Service.Client] finds in that block.
type SecondRequest struct {
	Event string
	Request
}

// A Message describes the messages of a service.
type Message struct {
	Noun      string // word for a message in reports: message or noop
	Unchecked bool   // messages are not checked by number, interval or publisher
	Numbered  bool   // each has a number
	Marked    bool   // each has the marker of the run
	Timed     bool   // each has the time at which it was sent
	Summed    bool   // each has a checksum of marker, number and time
	Shared    bool   // all streams of a topic receive the same messages, and are compared with each other
	// PerTopic reports whether the streams of a topic receive the same numbers. Otherwise each stream has its own numbers, which
	// continue when it reconnects.
	PerTopic bool
	// AnyOrder and AtLeastOnce report whether the service may reorder messages, and deliver one twice. These are not findings
	// then.
	AnyOrder, AtLeastOnce bool
	// Interval is the time after which the next message is due; 0: none is due by interval.
	Interval time.Duration

	event                  []string // nil: any
	data                   *string
	seq, marker, sent, sum extractor
	content                extractor // of Shared
}

// Data returns the data that each message has; "" if the description has no message.data.
func (m *Message) Data() string {
	if m.data == nil {
		return ""
	}
	return *m.data
}

// An Ending is the way in which a stream ends.
type Ending int

// The client closes a stream, or requests its end; or the server ends it after a lifetime, or with a terminal event.
const (
	ByClient Ending = iota
	ByRequest
	ByServer
	ByEvent
)

// An End describes how a stream ends.
type End struct {
	By      Ending
	Request *Request // of ByRequest
	// Shortest and Longest are the lifetime of a stream with ByServer. The client may end it earlier.
	Shortest, Longest time.Duration
}

// A Resume describes how a client resumes a stream.
type Resume struct {
	Header bool   // by Last-Event-ID
	Query  string // name of the parameter in the URL; "": none
	// GapHeader and GapValue are a header of the response that announces missing messages; "": none. GapValue may be AnotherID.
	GapHeader, GapValue string
	// SendsReadingID reports whether the client sends Reading.ID of the last message instead of its id: field.
	SendsReadingID bool
}

// AnotherID is the GapValue of a service that names the id after which it resumes: another id than the requested one is a gap.
const AnotherID = "{other}"

// Missed reports whether a header of the response to a client that requested to resume after an id announces missing messages.
func (r *Resume) Missed(header http.Header, requested []byte) bool {
	if r.GapHeader == "" {
		return false
	}
	value := strings.TrimSpace(header.Get(r.GapHeader))
	if r.GapValue == AnotherID {
		return value != "" && len(requested) > 0 && value != string(requested)
	}
	return strings.EqualFold(value, r.GapValue)
}

// Resumes reports whether a client can resume after the last message of the previous stream.
func (r *Resume) Resumes() bool { return r.Header || r.Query != "" }

// String returns how a client sends its position.
func (r *Resume) String() string {
	switch {
	case r.Header:
		return "Last-Event-ID"
	case r.Query != "":
		return "the parameter " + r.Query
	}
	return "none"
}

// Gap describes how the service announces missing messages; "": it does not.
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
		return fmt.Sprintf("the header %s with another id than requested", s.Resume.GapHeader)
	case s.Resume.GapHeader != "":
		return fmt.Sprintf("the header %s: %s", s.Resume.GapHeader, s.Resume.GapValue)
	}
	return ""
}

// Hash returns the SHA-256 of the description in hex. It does not depend on the order of fields and on white space.
func (s *Service) Hash() string { return s.hash }

// Source returns the JSON of a field of the description, such as message.seq, for sentences that quote it; "": the description does
// not have it.
func (s *Service) Source(field string) string { return gjson.GetBytes(s.source, field).Raw }
