package model

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/sse-soak/sse-soak/internal/model/numbered"
)

// An api has the templates of the answers of one API. [answer.fill] lists the placeholders of a template. The
// placeholders of refusal are $message, which is JSON, and $type.
type api struct {
	name          string // of the API's description in load-tests/services
	path          string
	head          string // the events before the first chunk
	chunk         string
	usage         string // the event after the tail if the request has stream_options.include_usage
	failure       string // the event of an error
	refusal       string // the body of a response with an error status
	end, limitEnd ending // limitEnd: the answer ends at its length limit
}

// An ending has the templates of the end of an answer.
type ending struct {
	tail     string // the events between the last chunk and the terminal event
	terminal string
	complete string // the answer to a request without "stream": true
}

var apis = [...]api{chat, responses, anthropic}

type answer struct {
	Order
	request
	created  int64 // in seconds since 1970
	sequence int   // number of the next event, for the API whose events are numbered
}

// ending returns the templates of the end of the answer.
func (a *answer) ending(of *api) *ending {
	if a.Fault.Kind == LengthLimit {
		return &of.limitEnd
	}
	return &of.end
}

// fill appends a template with the values of the answer. $token is the text of chunk k, and $text that of all chunks.
// These texts and $id need no escapes in JSON. $model is JSON. $prompt, $chunks and $total are numbers of tokens: a
// chunk is one token. $created is in seconds since 1970, and $sequence is the number of the event. $usage is empty, or
// a null field if the request has stream_options.include_usage.
func (a *answer) fill(b []byte, template string, k int) []byte {
	for {
		text, rest, found := strings.Cut(template, "$")
		if b = append(b, text...); !found {
			return b
		}
		end := strings.IndexFunc(rest, func(c rune) bool { return c < 'a' || c > 'z' })
		switch rest[:end] {
		case "id":
			b = append(b, a.ID...)
		case "model":
			b = append(b, a.model...)
		case "created":
			b = strconv.AppendInt(b, a.created, 10)
		case "sequence":
			b = appendInt(b, a.sequence)
			a.sequence++
		case "token":
			b = a.token(b, k, a.Fault)
		case "text":
			b = a.text(b)
		case "prompt":
			b = appendInt(b, promptTokens)
		case "chunks":
			b = appendInt(b, a.Chunks)
		case "total":
			b = appendInt(b, promptTokens+a.Chunks)
		case "usage":
			if a.usage {
				b = append(b, `,"usage":null`...)
			}
		}
		template = rest[end:]
	}
}

// token appends the text of chunk k. If the fault corrupts chunk k, the checksum is wrong, and there is no padding.
func (a *answer) token(b []byte, k int, fault Fault) []byte {
	if fault.Kind == Corrupt && k == fault.K {
		wrongToken := numbered.Token{K: k, N: a.Chunks, CRC: ^numbered.Checksum(a.ID, k, a.Chunks)}
		return append(numbered.AppendToken(b, wrongToken), ' ')
	}
	return numbered.Append(b, a.ID, k, a.Chunks, a.Size)
}

// text appends the text of all chunks. The text contains the fault only if the answer is not a stream. In a stream, the
// chunks contain the fault.
func (a *answer) text(b []byte) []byte {
	fault := a.Fault
	if a.stream {
		fault = Fault{}
	}
	for i := 1; i <= a.Chunks; i++ {
		numbers, count := fault.numbersAt(i, a.Chunks)
		for _, k := range numbers[:count] {
			b = a.token(b, k, fault)
		}
	}
	return b
}

const promptTokens = 10

const failureMessage = "fault injected by the numbered model"

func refuse(w http.ResponseWriter, api *api, status int, message string) {
	kind := "invalid_request_error"
	switch status {
	case http.StatusTooManyRequests:
		kind = "rate_limit_error"
	case http.StatusInternalServerError:
		kind = "api_error"
	}
	quoted, _ := json.Marshal(message) // cannot fail for a string
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = strings.NewReplacer("$message", string(quoted), "$type", kind).WriteString(w, api.refusal)
}

func appendInt(b []byte, n int) []byte { return strconv.AppendInt(b, int64(n), 10) }
