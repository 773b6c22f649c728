package main

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"

	"github.com/sse-soak/sse-soak/backend/answer"
)

// parseName reads a query parameter with a name of the protocol, "" if it is missing or empty. It rejects a repeated
// parameter, because two programs could each use another value.
func parseName(rawQuery, parameter string) (string, error) {
	query, err := url.ParseQuery(rawQuery)
	if err != nil {
		return "", errors.New("the query string is malformed; percent-encode it")
	}
	if len(query[parameter]) > 1 {
		return "", fmt.Errorf("the parameter %s is given more than once; give it once", parameter)
	}
	name := query.Get(parameter)
	if name != "" && !answer.ValidName(name) {
		return "", fmt.Errorf("the parameter %s has %s", parameter, answer.NameRule)
	}
	return name, nil
}

// parseDeviceID finds the device id in a query string.
func parseDeviceID(rawQuery string) (string, error) {
	id, err := parseName(rawQuery, "id")
	if err == nil && id == "" {
		err = errors.New("the parameter id is missing; call with ?id=ID, of " + answer.NameRule)
	}
	return id, err
}

// A lastEventID is the last event that a client reports as received.
type lastEventID struct {
	explicit bool
	number   uint64
}

// Highest number a client may claim; keeps every later number within int64.
const maxEventNumber = 1<<62 - 1

// parseLastEventID reads the Last-Event-ID header. No header, or an empty one (a browser without an id), is a fresh
// connect; 0 requests all messages from number 1. Any value but plain decimal digits is rejected.
func parseLastEventID(values []string) (lastEventID, error) {
	if len(values) == 0 || len(values) == 1 && values[0] == "" {
		return lastEventID{}, nil
	}
	if len(values) > 1 {
		return lastEventID{}, errors.New("the header Last-Event-ID is given more than once; give it once")
	}
	n, err := strconv.ParseUint(values[0], 10, 64)
	if err != nil || n > maxEventNumber || values[0][0] == '+' {
		return lastEventID{}, errors.New("Last-Event-ID is not a number this service gave; send the last id you received, or leave the header out")
	}
	return lastEventID{explicit: true, number: n}, nil
}
