package service

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
)

// maxInstructions limits a compiled expression, and so the steps of a search per character.
const maxInstructions = 1000

// compilePattern compiles an expression that has one group.
func compilePattern(expression string) (*regexp.Regexp, error) {
	pattern, err := regexp.Compile(expression)
	if err != nil {
		return nil, fmt.Errorf("must be a valid regular expression (%w)", err)
	}
	if pattern.NumSubexp() != 1 {
		return nil, errors.New("must have exactly one capturing group ( ) in its regular expression")
	}
	tree, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("must be a valid regular expression (%w)", err)
	}
	if program, err := syntax.Compile(tree.Simplify()); err != nil || len(program.Inst) > maxInstructions {
		return nil, errors.New("must have a smaller regular expression")
	}
	return pattern, nil
}

// findGroup returns the group of the leftmost match.
func findGroup(pattern *regexp.Regexp, text []byte) (found []byte, ok bool) {
	at := pattern.FindSubmatchIndex(text)
	if at == nil || at[2] < 0 {
		return nil, false
	}
	return text[at[2]:at[3]], true
}
