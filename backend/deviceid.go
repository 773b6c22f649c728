package main

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
)

// Longest device id and event name, in bytes.
const maxIDLength = 64

// validName reports whether s has 1 to 64 characters of [A-Za-z0-9._-]. That
// alphabet cannot break out of a header, a path, a label or an event stream.
func validName(s string) bool {
	if s == "" || len(s) > maxIDLength {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// onlyValue reads a query parameter that may be given once: twice is refused,
// because two parties could each believe in another one.
func onlyValue(rawQuery, name string) (value string, given bool, err error) {
	query, err := url.ParseQuery(rawQuery)
	if err != nil {
		return "", false, errors.New("the query string is malformed; percent-encode it")
	}
	switch values := query[name]; len(values) {
	case 0:
		return "", false, nil
	case 1:
		return values[0], true, nil
	}
	return "", false, fmt.Errorf("the parameter %s is given more than once; give it once", name)
}

// parseDeviceID finds the device id in a query string.
func parseDeviceID(rawQuery string) (string, error) {
	id, given, err := onlyValue(rawQuery, "id")
	if err != nil {
		return "", err
	}
	if !given {
		return "", errors.New("the parameter id is missing; call with ?id=ID")
	}
	if !validName(id) {
		return "", errors.New("an id has 1 to 64 characters of A-Z a-z 0-9 . _ -")
	}
	return id, nil
}

// parseEventName finds the optional event name in a query string.
func parseEventName(rawQuery string) (string, error) {
	name, given, err := onlyValue(rawQuery, "event")
	if err != nil || !given {
		return "", err
	}
	if !validName(name) {
		return "", errors.New("an event name has 1 to 64 characters of A-Z a-z 0-9 . _ -")
	}
	return name, nil
}

// lastEventID is what a client says it saw last.
type lastEventID struct {
	given  bool
	number uint64
}

// Highest number a client may claim; keeps every later number within int64.
const maxEventNumber = 1<<62 - 1

// parseLastEventID reads the Last-Event-ID header. No header, or an empty one
// (a browser that saw no id), is a fresh connect; 0 asks for everything from
// number 1. Anything but plain decimal digits is refused.
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
	return lastEventID{given: true, number: n}, nil
}
