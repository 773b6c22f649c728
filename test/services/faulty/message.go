package faulty

import (
	"bytes"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
)

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
