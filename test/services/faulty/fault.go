package faulty

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"
)

// A Kind is the effect of a fault on a stream.
type Kind string

const (
	// Lose drops the message.
	Lose Kind = "lose"
	// Repeat sends the message twice in a row.
	Repeat Kind = "repeat"
	// Swap sends the message after the next one of the stream. If the service ends the stream first, Swap sends the
	// message then.
	Swap Kind = "swap"
	// NoNumber replaces the message's number with a string; the JSON remains well-formed.
	NoNumber Kind = "no number"
	// OtherDigit adds two to the last digit of the message's number, modulo ten.
	OtherDigit Kind = "other digit"
	// OtherMarker changes the last character of the run's marker.
	OtherMarker Kind = "other marker"
	// OtherTime adds two to the last digit of the message's timestamp, modulo ten.
	OtherTime Kind = "other time"
	// Garble inserts a letter before the message's number, which makes the JSON malformed.
	Garble Kind = "garble"
	// Reset ends the stream with a TCP reset instead of sending the message.
	Reset Kind = "reset"
	// Close closes the connection without ending the response body, instead of sending the message.
	Close Kind = "close"
	// End completes the response normally instead of sending the message.
	End Kind = "end"
	// ResetAfter sends the message, and ends the stream with a TCP reset after Wait.
	ResetAfter Kind = "reset after"
	// Truncate closes the connection in the middle of the message.
	Truncate Kind = "truncate"
	// Vanish sends the message and nothing after it, but leaves the connection open.
	Vanish Kind = "vanish"
	// Pause sends nothing for the duration Wait, and then the message and all later ones.
	Pause Kind = "pause"
)

// A Fault is an effect on one message of each stream. A reconnect opens another stream.
type Fault struct {
	Kind Kind
	// Topic, if not empty, limits the fault to the streams of this topic.
	Topic string
	// Client, if not empty, limits the fault to the streams whose URL has this value of the parameter id.
	Client string
	// Message is the position of the affected message in its stream, from 1; 0: the first.
	Message int
	// Number, if not 0, selects the message by its number instead of its position.
	Number int64
	// Once limits the fault to the first stream that it affects.
	Once bool
	// Wait is the delay of ResetAfter and Pause.
	Wait time.Duration
}

// A PublishKind is the effect of a fault on a publish request.
type PublishKind int

const (
	// Refuse responds with Status; the service does not receive the request.
	Refuse PublishKind = iota + 1
	// CutBefore closes the connection without a response; the service does not receive the request.
	CutBefore
	// CutAfter closes the connection without a response after the service has acknowledged the request.
	CutAfter
)

// A PublishFault is an effect on publish requests, which are counted in the order of their arrival.
type PublishFault struct {
	Kind PublishKind
	// Status is the status code of Refuse, such as 401 or 503.
	Status int
	// From is the first affected request, from 1; 0: the first.
	From int
	// Count is the number of affected requests; 0: all requests from From on.
	Count int
}

// An Action is the record of one effect.
type Action struct {
	At time.Time
	// Fault is the effect on a stream, Publish the effect on a publish request.
	Fault   Kind
	Publish PublishKind
	Status  int // status code sent by Refuse
	// Topic and Number identify the affected message.
	Topic  string
	Number int64
	// Client is the value of the parameter id in the stream's URL. Message is the position in the stream, from 1.
	Client  string
	Message int
}

// Patterns for the number, the run's marker and the send time in messages of load-tests/services.
var (
	numberField = regexp.MustCompile(`"seq":\s*([0-9]+)`)
	markerField = regexp.MustCompile(`"run":\s*"([^"]+)"`)
	timeField   = regexp.MustCompile(`"t":\s*([0-9]+)`)
)

// topicName matches the topic names of a run: PREFIXtopic-K.
var topicName = regexp.MustCompile(`[A-Za-z0-9._-]*topic-[0-9]+`)

func number(message []byte) int64 {
	found := numberField.FindSubmatch(message)
	if found == nil {
		return 0
	}
	n, err := strconv.ParseInt(string(found[1]), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func topicOf(text string) string {
	if plain, err := url.QueryUnescape(text); err == nil {
		text = plain
	}
	return topicName.FindString(text)
}

// changeMessage returns a message in which the fault has changed the number, the marker or the time. A message without
// this field is returned unchanged.
func changeMessage(kind Kind, message []byte) []byte {
	field := numberField
	switch kind {
	case OtherMarker:
		field = markerField
	case OtherTime:
		field = timeField
	}
	bounds := field.FindSubmatchIndex(message)
	if bounds == nil {
		return message
	}
	value := string(message[bounds[2]:bounds[3]])
	last := len(value) - 1
	switch kind {
	case NoNumber:
		value = `"x` + value + `"`
	case OtherDigit, OtherTime:
		value = value[:last] + string('0'+(value[last]-'0'+2)%10)
	case OtherMarker:
		replacement := "x"
		if value[last] == 'x' {
			replacement = "y"
		}
		value = value[:last] + replacement
	case Garble:
		value = "x" + value
	}
	return bytes.Join([][]byte{message[:bounds[2]], []byte(value), message[bounds[3]:]}, nil)
}

// publishes reports whether a request publishes a message of the run. Other POST requests, such as one that joins a
// stream to a topic, do not contain the marker.
func publishes(r *http.Request, body []byte, marker string) bool {
	if r.Method != http.MethodPost && r.Method != http.MethodPut {
		return false
	}
	return bytes.Contains(decodeForm(body), []byte(marker))
}

func decodeForm(body []byte) []byte {
	if text, err := url.QueryUnescape(string(body)); err == nil {
		return []byte(text)
	}
	return body
}

// A slowListener accepts connections that send each byte separately.
type slowListener struct{ net.Listener }

func (l slowListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return slowConn{c}, nil
}

type slowConn struct{ net.Conn }

func (c slowConn) Write(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		if _, err = c.Conn.Write(p[n : n+1]); err == nil {
			n++
		}
	}
	return n, err
}

// A mergedConn returns the bytes that arrive within 30 ms in a single Read.
type mergedConn struct{ net.Conn }

func dialMerged(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return mergedConn{c}, nil
}

func (c mergedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil || n == len(p) {
		return n, err
	}
	time.Sleep(30 * time.Millisecond)
	_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
	extra, _ := c.Conn.Read(p[n:])
	_ = c.SetReadDeadline(time.Time{})
	return n + extra, nil
}
