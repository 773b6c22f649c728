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

// A Service is a compiled description.
type Service struct {
	Name string
	// HasToken, HasURL and HasBody report whether the description has the functions token(), url(n) and body(n). These
	// run in JavaScript, once per attempt to connect. token() returns Values.Token. url(n) and body(n) replace the URL
	// and the body of Connect.
	HasToken, HasURL, HasBody bool
	// TokenVariable is the environment variable that contains Values.Token. It is "" if token is a function or missing.
	TokenVariable string

	Connect Request // opens a stream; its URL is empty if HasURL
	// MaxEventSize limits the data of an event, and a line other than a comment, in bytes. 0 means 1 MiB.
	MaxEventSize  int
	SecondRequest *SecondRequest // nil: streams need no second request

	HeartbeatEvery time.Duration // expected maximum silence of a stream, or 0 if it is unknown
	Message        Message
	End            End
	Resume         Resume
	Finite         *FiniteResponse // nil: streams do not end with a terminal event
	Publish        *Request        // nil: the run cannot publish to the service

	heartbeat, gap matcher
	client         extractor // finds {client}; clientPaths are its JSON paths
	clientHeader   string    // name of the response header that contains {client}, or ""
	resumeID       extractor // finds Reading.ID
	paths          [][]segment
	branches       []branch // tree of paths
	clientPaths    [][]segment
	hash           string
	source         []byte // JSON of the description
}

// Variable returns the name of the environment variable that contains the token of a trial: TokenVariable, by default
// SUBSCRIBE_TOKEN.
func (s *Service) Variable() string { return cmp.Or(s.TokenVariable, "SUBSCRIBE_TOKEN") }

// A Request is a template of an HTTP request.
type Request struct {
	Method  string
	URL     Template
	Headers []Header
	Body    Template
	OK      []int // statuses that confirm the request
}

// Route returns the method and the URL of the request with its placeholders, such as "GET /event/connect", for metrics
// and reports. It omits {base} and the query. If the function url(n) returns the URL, Route returns "url(n)" instead of
// the URL. For a nil request, Route returns "".
func (r *Request) Route() string {
	if r == nil {
		return ""
	}
	path, _, _ := strings.Cut(r.URL.String(), "?")
	if path == "" {
		path = "url(n)"
	}
	return r.Method + " " + cmp.Or(strings.TrimPrefix(path, "{base}"), "/")
}

// Accepts reports whether a status confirms the request.
func (r *Request) Accepts(status int) bool {
	return slices.Contains(r.OK, status)
}

// Marks reports whether messages or requests contain the marker of the run.
func (s *Service) Marks() bool {
	return s.Message.Marked || s.Connect.Uses(Run) || s.Publish.Uses(Run) || s.End.Request.Uses(Run) ||
		s.SecondRequest != nil && s.SecondRequest.Uses(Run)
}

// Uses reports whether the request has a placeholder for the field. The request may be nil.
func (r *Request) Uses(f Field) bool {
	return r != nil && (r.URL.Uses(f) || r.Body.Uses(f) || slices.ContainsFunc(r.Headers, func(h Header) bool { return h.Value.Uses(f) }))
}

// FilledHeaders yields the name and the value of each header that is not omitted.
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
	Name  string // spelled as in the description
	Value Template
}

// Omitted reports whether the header is not sent because its {token} or {client} is empty.
func (h Header) Omitted(v *Values) bool {
	return v.Token == "" && h.Value.Uses(Token) || v.Client == "" && h.Value.Uses(Client)
}

// A SecondRequest is a request that a stream needs before messages arrive. It is sent after the first event with the
// name Event. [Service.Client] finds its {client} in that event.
type SecondRequest struct {
	Event string
	Request
}

// A Message describes the messages of a service.
type Message struct {
	Noun      string // word for a message in reports: message or noop
	Unchecked bool   // messages are not checked by number, interval or comparison
	Numbered  bool   // each message has a number
	Marked    bool   // each message has the marker of the run
	Timed     bool   // each message has the time at which it was sent
	Summed    bool   // each message has a checksum of marker, number and time
	Shared    bool   // all streams of a topic receive the same messages, and are compared with each other
	// PerTopic reports whether the streams of a topic receive the same numbers; it is true if Shared is. Otherwise each
	// stream has its own numbers, which continue on the stream that resumes it.
	PerTopic bool
	// AnyOrder allows reordered messages; AtLeastOnce allows duplicates.
	AnyOrder, AtLeastOnce bool
	// Interval is the time between two messages, or 0 without message.every.
	Interval time.Duration

	event                  []string // names of the events that are messages; nil means all names
	data                   *string
	seq, marker, sent, sum extractor
	content                extractor // finds the part that is the same for all streams of a topic, if Shared
}

// Data returns message.data, the required data of each message, or "" if the description has none.
func (m *Message) Data() string {
	if m.data == nil {
		return ""
	}
	return *m.data
}

// An Ending is the way in which a stream ends.
type Ending int

// The ways in which a stream ends.
const (
	ByClient  Ending = iota // the client closes it
	ByRequest               // the client requests its end
	ByServer                // the server ends it after a lifetime
	ByEvent                 // the server ends it with a terminal event
)

// An End describes how a stream ends.
type End struct {
	By      Ending
	Request *Request // request that ends a stream; nil unless By is ByRequest
	// Shortest and Longest are the range of lifetimes for ByServer. The client may end a stream earlier.
	Shortest, Longest time.Duration
}

// A Resume describes how a client resumes a stream.
type Resume struct {
	Header bool   // the client sends Last-Event-ID
	Query  string // name of the parameter in the URL, or ""
	// GapHeader and GapValue are the name and the value of a response header that announces missing messages, or "".
	// GapValue may be AnotherID.
	GapHeader, GapValue string
	// SendsReadingID reports whether the client sends Reading.ID of the last message instead of its id: field.
	SendsReadingID bool
}

// AnotherID is the GapValue of a service whose response names the id after which the stream resumes. Any id except the
// requested one announces missing messages.
const AnotherID = "{other}"

// Missed reports whether a response announces missing messages after the requested id.
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

// String names the header or parameter in which a client sends its position. It returns "none" if the client sends
// none.
func (r *Resume) String() string {
	switch {
	case r.Header:
		return "Last-Event-ID"
	case r.Query != "":
		return "the parameter " + r.Query
	}
	return "none"
}

// Gap describes how the service announces missing messages. It returns "" if the service does not announce them.
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
		return fmt.Sprintf("the header %s with an id other than the requested one", s.Resume.GapHeader)
	case s.Resume.GapHeader != "":
		return fmt.Sprintf("the header %s: %s", s.Resume.GapHeader, s.Resume.GapValue)
	}
	return ""
}

// Hash returns the SHA-256 of the description in hex. It depends neither on the order of fields nor on white space.
func (s *Service) Hash() string { return s.hash }

// Source returns the JSON of a field of the description, such as message.seq, for sentences that quote it. It returns
// "" if the description does not have the field.
func (s *Service) Source(field string) string { return gjson.GetBytes(s.source, field).Raw }
