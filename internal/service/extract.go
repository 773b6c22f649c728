package service

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// The errors of a Reading or a Chunk.
var (
	ErrMissing = errors.New("the value is missing")
	ErrNumber  = errors.New("the value is not an integer of at least 0")
	ErrJSON    = errors.New("the data is not JSON")
	ErrUTF8    = errors.New("the data is not UTF-8")
	ErrNoData  = errors.New("the terminal event has no data, so the HTML standard does not count it as an event; send a data field with it")
	ErrData    = errors.New("the data differs from the description")
	ErrSum     = errors.New("the checksum is missing or does not match the marker, the number and the time")
	ErrMarker  = errors.New("the marker is missing or does not match the checksum")
)

type extractor struct {
	source  source
	pattern *pattern // its group is the value; if nil, the whole text is the value
	path    int      // index of the path, for fromJSON
}

// A source is the part of a block that contains a value.
type source int

const (
	fromNowhere source = iota // the description does not name a place for the value
	fromID
	fromData
	fromComment
	fromJSON
)

const sources = "id, id:REGEX, json:$.path, data, data:REGEX, comment or comment:REGEX"

// parseExtractor parses the place of a value, such as id or json:$.path, and adds a JSON path to paths.
func parseExtractor(text string, paths *[][]segment) (e extractor, err error) {
	kind, rest, hasMore := strings.Cut(text, ":")
	switch kind {
	case "id":
		e.source = fromID
	case "data":
		e.source = fromData
	case "comment":
		e.source = fromComment
	case "json":
		path, err := parsePath(rest)
		if err != nil {
			return e, fmt.Errorf("%w, got %q", err, text)
		}
		return extractor{source: fromJSON, path: addPath(paths, path)}, nil
	default:
		return e, fmt.Errorf("must be %s, got %q", sources, text)
	}
	if hasMore {
		if e.pattern, err = compilePattern(rest); err != nil {
			return e, fmt.Errorf("%w, got %q", err, text)
		}
	}
	return e, nil
}

type value struct {
	text   []byte // part of the block, or a copy of a JSON string without its escapes
	scalar bool   // text is a string or a number, not another JSON value
}

// find returns the value in a block, or in the JSON d of its data.
func (e *extractor) find(b *Block, d *document) (v value, ok bool) {
	v.scalar = true
	switch e.source {
	case fromJSON:
		return d.value(e.path)
	case fromID:
		v.text, ok = b.ID, b.HasID
	case fromData:
		v.text, ok = b.Data, b.HasData
	case fromComment:
		v.text, ok = b.Comment, b.HasComment
	}
	if ok && e.pattern != nil {
		v.text, ok = e.pattern.find(v.text)
	}
	return v, ok
}

// maxInstructions limits the size of a compiled expression, and thus the steps of a search per character.
const maxInstructions = 1000

// A pattern is a regular expression with one group.
type pattern struct {
	expression *regexp.Regexp
	name       []byte // NAME= if the expression matches namedNumber, otherwise nil
}

// namedNumber matches expressions such as `^ *sent=([0-9]+) *$` of the noop description. find evaluates them without
// regexp, which would allocate memory for each message.
var namedNumber = regexp.MustCompile(`^\^ \*([a-zA-Z]+=)\(\[0-9\]\+\) \*\$$`)

func compilePattern(expression string) (*pattern, error) {
	compiled, err := regexp.Compile(expression)
	if err != nil {
		return nil, fmt.Errorf("must be a valid regular expression (%w)", err)
	}
	if compiled.NumSubexp() != 1 {
		return nil, errors.New("must have exactly one capturing group ( ) in its regular expression")
	}
	tree, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("must be a valid regular expression (%w)", err)
	}
	if program, err := syntax.Compile(tree.Simplify()); err != nil || len(program.Inst) > maxInstructions {
		return nil, fmt.Errorf("must have a smaller regular expression, of at most %d compiled instructions", maxInstructions)
	}
	p := &pattern{expression: compiled}
	if found := namedNumber.FindStringSubmatch(expression); found != nil {
		p.name = []byte(found[1])
	}
	return p, nil
}

func (p *pattern) find(text []byte) (found []byte, ok bool) {
	if p.name != nil {
		number, ok := bytes.CutPrefix(bytes.Trim(text, " "), p.name)
		return number, ok && len(number) > 0 && len(bytes.TrimLeft(number, "0123456789")) == 0
	}
	at := p.expression.FindSubmatchIndex(text)
	if at == nil || at[2] < 0 {
		return nil, false
	}
	return text[at[2]:at[3]], true
}
