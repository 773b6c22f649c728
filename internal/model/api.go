package model

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/sse-soak/sse-soak/internal/model/numbered"
)

// An api writes answers in the format of one API. Its methods append to b. Texts of chunks need no escapes in JSON.
type api interface {
	// name returns the name of the API's description in load-tests/services.
	name() string
	// head appends the events before the first chunk.
	head(b []byte, a *answer) []byte
	chunk(b []byte, a *answer, k int) []byte
	// tail appends the events between the last chunk and the terminal event.
	tail(b []byte, a *answer) []byte
	terminal(b []byte, a *answer) []byte
	failure(b []byte, a *answer) []byte
	// appendComplete appends the answer to a request without "stream": true.
	appendComplete(b []byte, a *answer) []byte
	// refusal appends the body of a response with an error status.
	refusal(b []byte, status int, message string) []byte
}

type answer struct {
	Order
	request
	created  int64 // in seconds since 1970
	sequence int   // number of the next event, for the API whose events are numbered
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

func errorType(status int) string {
	switch status {
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case http.StatusInternalServerError:
		return "api_error"
	case http.StatusNotFound:
		return "not_found_error"
	}
	return "invalid_request_error"
}

func appendString(b []byte, text string) []byte {
	quoted, _ := json.Marshal(text) // cannot fail for a string
	return append(b, quoted...)
}

func appendInt(b []byte, n int) []byte { return strconv.AppendInt(b, int64(n), 10) }
