package service

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxDescriptionDepth is the maximum nesting of a description. The documented fields need five levels.
const maxDescriptionDepth = 32

type node struct {
	at      int64 // offset after the first token of the value; it orders the errors
	value   any   // nil, bool, json.Number or string; for an object or a list, its opening json.Delim
	members []member
	items   []*node
	kind    kind
}

type member struct {
	name string
	at   int64 // offset after the name in the description
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
	decoder.UseNumber()
	n, err := readNode(decoder, 0)
	if err == nil {
		if _, err = decoder.Token(); err == nil {
			err = errors.New("trailing data after its end")
		} else if errors.Is(err, io.EOF) {
			return n, nil
		}
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return nil, fmt.Errorf("read the description as JSON: %w", err)
}

func readNode(decoder *json.Decoder, depth int) (*node, error) {
	if depth > maxDescriptionDepth {
		return nil, fmt.Errorf("nested deeper than %d levels", maxDescriptionDepth)
	}
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	n := &node{at: decoder.InputOffset(), value: token}
	switch token := token.(type) {
	case nil:
		n.kind = kindNull
	case bool:
		n.kind = kindBool
	case json.Number:
		n.kind = kindNumber
	case string:
		n.kind = kindText
	case json.Delim:
		n.kind = map[json.Delim]kind{'{': kindObject, '[': kindList}[token]
		err = n.fill(decoder, depth+1)
	}
	return n, err
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

func (n *node) fill(decoder *json.Decoder, depth int) error {
	for decoder.More() {
		m := member{}
		if n.kind == kindObject {
			name, err := decoder.Token()
			if err != nil {
				return err
			}
			m.name, _ = name.(string)
			m.at = decoder.InputOffset()
		}
		child, err := readNode(decoder, depth)
		if err != nil {
			return err
		}
		if m.node = child; n.kind == kindObject {
			n.members = append(n.members, m)
		} else {
			n.items = append(n.items, child)
		}
	}
	_, err := decoder.Token()
	return err
}
