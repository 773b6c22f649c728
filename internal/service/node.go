package service

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// deepest is the maximum nesting of a description. The documented fields need five levels.
const deepest = 32

// A node is a JSON value of a description with the offset of its end, by which errors are sorted.
type node struct {
	at      int64
	value   any // nil, bool, json.Number or string
	members []member
	items   []*node
	kind    kind
}

type member struct {
	name string
	at   int64
	node *node
}

type kind string

const (
	isNull   kind = "null"
	isBool   kind = "true or false"
	isNumber kind = "a number"
	isText   kind = "text"
	isList   kind = "a list"
	isObject kind = "an object"
)

// read parses a description.
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
	return nil, fmt.Errorf("the description is no JSON: %w", err)
}

func readNode(decoder *json.Decoder, depth int) (*node, error) {
	if depth > deepest {
		return nil, errors.New("it is nested too deeply")
	}
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	n := &node{at: decoder.InputOffset(), value: token}
	switch token := token.(type) {
	case nil:
		n.kind = isNull
	case bool:
		n.kind = isBool
	case json.Number:
		n.kind = isNumber
	case string:
		n.kind = isText
	case json.Delim:
		n.kind = map[json.Delim]kind{'{': isObject, '[': isList}[token]
		err = n.fill(decoder, depth+1)
	}
	return n, err
}

// fill reads the content of an object or a list, and its end.
func (n *node) fill(decoder *json.Decoder, depth int) error {
	for decoder.More() {
		m := member{}
		if n.kind == isObject {
			name, err := decoder.Token()
			if err != nil {
				return err
			}
			m.name, _ = name.(string)
			m.at = decoder.InputOffset()
		}
		below, err := readNode(decoder, depth)
		if err != nil {
			return err
		}
		if m.node = below; n.kind == isObject {
			n.members = append(n.members, m)
		} else {
			n.items = append(n.items, below)
		}
	}
	_, err := decoder.Token()
	return err
}
