package main

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"

	"github.com/sse-soak/sse-soak/backend/answer"
)

// parseName returns the name in a query parameter ("": none). It rejects a repeated parameter, because a proxy and the
// backend could use different values.
func parseName(rawQuery, parameter string) (string, error) {
	query, err := url.ParseQuery(rawQuery)
	if err != nil {
		return "", errors.New("the query string is malformed; percent-encode it")
	}
	if len(query[parameter]) > 1 {
		return "", fmt.Errorf("the parameter %s occurs more than once; send it once", parameter)
	}
	name := query.Get(parameter)
	if name != "" && !answer.ValidName(name) {
		return "", fmt.Errorf("the parameter %s must have %s", parameter, answer.NameRule)
	}
	return name, nil
}

func parseDeviceID(rawQuery string) (string, error) {
	id, err := parseName(rawQuery, "id")
	if err == nil && id == "" {
		err = errors.New("the parameter id is missing; add ?id=ID, with " + answer.NameRule)
	}
	return id, err
}

// A lastEventID is the last event that a client reports as received.
type lastEventID struct {
	explicit bool // the client sent a Last-Event-ID that is not empty
	number   uint64
}

// maxEventNumber is the highest accepted Last-Event-ID. It keeps all later numbers within int64.
const maxEventNumber = 1<<62 - 1

// parseLastEventID parses the Last-Event-ID header. A missing or empty header (the client has no id yet) starts a new
// numbering, and 0 requests all events from number 1. Any other value must consist of decimal digits.
func parseLastEventID(values []string) (lastEventID, error) {
	if len(values) == 0 || len(values) == 1 && values[0] == "" {
		return lastEventID{}, nil
	}
	if len(values) > 1 {
		return lastEventID{}, errors.New("the header Last-Event-ID occurs more than once; send it once")
	}
	n, err := strconv.ParseUint(values[0], 10, 64)
	if err != nil || n > maxEventNumber {
		return lastEventID{}, errors.New("Last-Event-ID must be the id of an event of this service; send the last received id, or remove the header")
	}
	return lastEventID{explicit: true, number: n}, nil
}
