package service

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
)

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
