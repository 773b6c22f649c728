package service

import (
	"fmt"
	"slices"
)

type fields struct {
	path     string // path of the object, or "" for the whole description
	node     *node
	byName   map[string]member
	reported map[string]bool // fields with a reported mistake: null, or a misspelled name
}

// fields parses an object with known fields. It returns nil if n is nil or not an object.
func (p *parser) fields(n *node, path string, known ...string) *fields {
	if n == nil {
		return nil
	}
	if n.kind != kindObject {
		if path == "" {
			path = "a description"
		}
		p.mistakes.add(n.at, "%s must be an object with %s, got %s", path, enumerate(known, ", ", " or "), n.kind)
		return nil
	}
	f := &fields{path: path, node: n, byName: map[string]member{}, reported: map[string]bool{}}
	for _, m := range n.members {
		full := f.qualifiedName(m.name)
		if !slices.Contains(known, m.name) {
			suggestion := Nearest(m.name, known)
			f.reported[suggestion] = true
			if suggestion != "" {
				suggestion = "; did you mean " + f.qualifiedName(suggestion) + "?"
			}
			p.mistakes.add(m.at, "%s is unknown%s (known: %s)", full, suggestion, enumerate(known, ", ", " and "))
			continue
		}
		if _, duplicate := f.byName[m.name]; duplicate {
			p.mistakes.add(m.at, "%s is defined twice; remove one of the definitions", full)
		}
		if m.node.kind == kindNull {
			f.reported[m.name] = true
			p.mistakes.add(m.node.at, "%s is null, or Infinity or NaN, which JSON cannot represent; set a value, or remove it", full)
			continue
		}
		f.byName[m.name] = m
	}
	return f
}

func (f *fields) qualifiedName(name string) string {
	if f.path == "" {
		return name
	}
	return f.path + "." + name
}

func (f *fields) valueNode(name string) *node { return f.byName[name].node }

// hasAny reports whether any of the fields is present or has a reported mistake.
func (f *fields) hasAny(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return f.valueNode(name) != nil || f.reported[name] })
}

// need returns a required field, or reports that it is missing. purpose describes the field in the error.
func (f *fields) need(p *parser, name, purpose string) *node {
	n := f.valueNode(name)
	if n == nil && !f.reported[name] {
		p.mistakes.add(f.node.at, "%s is missing: %s", f.qualifiedName(name), purpose)
	}
	return n
}

func (f *fields) position(name string) int64 {
	if m, ok := f.byName[name]; ok {
		return m.node.at
	}
	return f.node.at
}

// text returns the text of n. It returns false if n is nil or not a string. A node that is not a string is a mistake.
func (p *parser) text(n *node, path string) (string, bool) {
	if n == nil {
		return "", false
	}
	text, ok := n.value.(string)
	if !ok {
		hint := ""
		if n.kind == kindBool {
			hint = " (only token, url and body can be functions)"
		}
		p.mistakes.add(n.at, "%s must be text, got %s%s", path, n.kind, hint)
	}
	return text, ok
}

// optionalText returns the text of n, which may be empty, or nil if n is nil or not a string.
func (p *parser) optionalText(n *node, path string) *string {
	if text, ok := p.text(n, path); ok {
		return &text
	}
	return nil
}

func (p *parser) names(n *node, path string) (out []string) {
	for _, item := range p.items(n, path) {
		if name, ok := p.text(item, path); ok {
			out = append(out, name)
		}
	}
	return out
}

// choice returns the index of the field's value in words. It returns 0 for a missing or invalid field.
func (p *parser) choice(n *node, path string, words ...string) int {
	if n == nil {
		return 0
	}
	if i := slices.Index(words, fmt.Sprint(n.value)); i >= 0 && n.kind == kindText {
		return i
	}
	all := "'" + enumerate(words, "', '", "' or '") + "'"
	if n.kind == kindText {
		p.mistakes.add(n.at, "%s must be %s, got %q", path, all, n.value)
	} else {
		p.mistakes.add(n.at, "%s must be %s, got %s", path, all, n.kind)
	}
	return 0
}

// isFunction reports whether a field is a function. In the JSON, its value is true.
func (p *parser) isFunction(n *node, name string) bool {
	if n == nil {
		return false
	}
	if n.value == true {
		return true
	}
	p.mistakes.add(n.at, "%s must be a function that returns text, got %s", name, n.kind)
	return false
}

// extractor parses the place of a value. If n is nil, the result finds nothing.
func (p *parser) extractor(n *node, path string, paths *[][]segment) extractor {
	text, ok := p.text(n, path)
	if !ok {
		return extractor{}
	}
	e, err := parseExtractor(text, paths)
	if err != nil {
		p.mistakes.add(n.at, "%s %s", path, err)
	}
	return e
}
