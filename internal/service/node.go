package service

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/tidwall/gjson"
)

type node struct {
	at      int64 // offset of the value; it orders the errors
	value   any   // nil, bool, json.Number or string; nil for an object or a list
	members []member
	items   []*node
	kind    kind
}

type member struct {
	name string
	at   int64 // offset of the name in the description
	node *node
}

// A kind is the type of a JSON value, as errors name it.
type kind string

const (
	kindNull   kind = "null"
	kindBool   kind = "true or false"
	kindNumber kind = "a number"
	kindText   kind = "text"
	kindList   kind = "a list"
	kindObject kind = "an object"
)

func read(text []byte) (*node, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	err := decoder.Decode(new(json.RawMessage))
	if err == nil {
		if _, err = decoder.Token(); errors.Is(err, io.EOF) {
			return newNode(gjson.ParseBytes(text)), nil
		}
		err = errors.New("trailing data after its end")
	} else if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return nil, fmt.Errorf("read the description as JSON: %w", err)
}

func newNode(v gjson.Result) *node {
	n := &node{at: int64(v.Index)}
	switch v.Type {
	case gjson.Null:
		n.kind = kindNull
	case gjson.False, gjson.True:
		n.kind, n.value = kindBool, v.Type == gjson.True
	case gjson.Number:
		n.kind, n.value = kindNumber, json.Number(v.Raw)
	case gjson.String:
		n.kind, n.value = kindText, unquote(v.Raw)
	case gjson.JSON:
		n.kind = kindList
		if v.IsObject() {
			n.kind = kindObject
		}
		v.ForEach(func(name, value gjson.Result) bool {
			if child := newNode(value); n.kind == kindObject {
				n.members = append(n.members, member{unquote(name.Raw), int64(name.Index), child})
			} else {
				n.items = append(n.items, child)
			}
			return true
		})
	}
	return n
}

func (n *node) list() []*node {
	switch {
	case n == nil:
		return nil
	case n.kind == kindList:
		return n.items
	}
	return []*node{n}
}
