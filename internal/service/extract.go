package service

import (
	"errors"
	"fmt"
	"strings"
)

// Why nothing could be taken out of a message.
var (
	ErrMissing = errors.New("it is not there")
	ErrNumber  = errors.New("it is no whole number from 0 on")
	ErrJSON    = errors.New("the data is no JSON")
	ErrData    = errors.New("the data is not what the description says")
	ErrSum     = errors.New("the checksum is not there, or not that of its marker, number and time")
	ErrMarker  = errors.New("the marker is not there, or not the one that its checksum is of")
)

// extractor takes one thing out of a block.
type extractor struct {
	from    source
	pattern *pattern // nil: all of it
	path    int      // number of the path, of fromJSON
}

type source int

const (
	fromNowhere source = iota
	fromID
	fromData
	fromComment
	fromJSON
)

const sources = "id, id:REGEX, json:$.path, data, data:REGEX, comment or comment:REGEX"

// parseExtractor reads id, json:$.path and so on; a path goes to paths.
func parseExtractor(text string, paths *paths) (e extractor, err error) {
	kind, rest, more := strings.Cut(text, ":")
	switch kind {
	case "id":
		e.from = fromID
	case "data":
		e.from = fromData
	case "comment":
		e.from = fromComment
	case "json":
		steps, err := parsePath(rest)
		if err != nil {
			return e, fmt.Errorf("is %q: %w", text, err)
		}
		return extractor{from: fromJSON, path: paths.add(steps)}, nil
	default:
		return e, fmt.Errorf("is %q: it must be %s", text, sources)
	}
	if more {
		if e.pattern, err = compile(rest); err != nil {
			return e, fmt.Errorf("is %q: %w", text, err)
		}
	}
	return e, nil
}

// value is what an extractor found. It lies in the block: nothing is copied.
type value struct {
	raw  []byte
	kind byte // of JSON, as a span has it; 0: text as it is
}

// find is what the extractor finds, as it stands in the block. found has what the paths led to.
func (e *extractor) find(b *Block, found *[maxPaths]span) (v value, ok bool) {
	switch e.from {
	case fromJSON:
		at := found[e.path]
		return value{b.Data[at.start:at.end], at.kind}, at.kind != 0 && at.kind != 'n' // null is nothing
	case fromID:
		v, ok = value{b.ID, 0}, b.HasID
	case fromData:
		v, ok = value{b.Data, 0}, b.HasData
	case fromComment:
		v, ok = value{b.Comment, 0}, b.HasComment
	}
	if ok && e.pattern != nil {
		v.raw, ok = e.pattern.find(v.raw)
	}
	return v, ok
}

// scalar says that there is a text or a number.
func (v value) scalar() bool { return v.kind == 0 || v.kind == '"' || v.kind == '0' }
