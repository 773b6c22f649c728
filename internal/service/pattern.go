package service

import (
	"bytes"
	"errors"
	"fmt"
	"regexp/syntax"
	"unicode/utf8"
)

// pattern is a regular expression with one group, as package regexp reads it. That package allocates for each
// group that it finds; this one does not. It finds what regexp.FindSubmatch does, by the same method: all
// alternatives at once, so that the time grows with the text and never beyond.
type pattern struct {
	prog     *syntax.Prog
	prefix   []byte // every match begins with it
	anchored bool   // a match begins with the text
	sequence *sequence
	machines chan *machine // memory of searches that are over
}

// largest bounds a compiled expression: with the length of a text it is the time that it takes.
const largest = 1000

// kept is how many searches at a time find memory of earlier ones; a sync.Pool may lose it at any time.
const kept = 64

// compile reads an expression that has one group.
func compile(expression string) (*pattern, error) {
	tree, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("the regular expression does not compile: %w", err)
	}
	switch groups := tree.MaxCap(); {
	case groups == 0:
		return nil, errors.New("the regular expression has no group: put ( ) around what it should find")
	case groups > 1:
		return nil, fmt.Errorf("the regular expression has %d groups: write (?: ) where it should find nothing", groups)
	}
	tree = tree.Simplify()
	prog, err := syntax.Compile(tree)
	if err != nil {
		return nil, fmt.Errorf("the regular expression does not compile: %w", err)
	}
	if len(prog.Inst) > largest {
		return nil, errors.New("the regular expression is too large")
	}
	p := &pattern{prog: prog, anchored: prog.StartCond()&syntax.EmptyBeginText != 0, machines: make(chan *machine, kept)}
	prefix, _ := prog.Prefix()
	p.prefix = []byte(prefix)
	p.sequence = sequenceOf(tree)
	return p, nil
}

// group is where the group of a match lies in the text; −1: in no place.
type group struct{ start, end int }

// find is what the group of the leftmost match holds.
func (p *pattern) find(text []byte) (found []byte, ok bool) {
	if p.sequence != nil {
		if g, ok, sure := p.sequence.run(text); sure {
			return g.of(text), ok
		}
	}
	return p.search(text)
}

// search finds any expression.
func (p *pattern) search(text []byte) (found []byte, ok bool) {
	var m *machine
	select {
	case m = <-p.machines:
	default:
		m = newMachine(p.prog)
	}
	g, ok := m.run(p, text)
	select {
	case p.machines <- m:
	default:
	}
	ok = ok && g.start >= 0 && g.end >= g.start
	if !ok {
		return nil, false
	}
	return g.of(text), true
}

func (g group) of(text []byte) []byte { return text[g.start:g.end] }

// thread is an alternative: it stands before an instruction, and has seen this of the group.
type thread struct {
	pc    uint32
	group group
}

// threads are alternatives by preference, each instruction once.
type threads struct {
	dense  []thread
	sparse []uint32 // index in dense, by instruction
}

func (l *threads) has(pc uint32) bool {
	i := l.sparse[pc]
	return int(i) < len(l.dense) && l.dense[i].pc == pc
}

// machine is the memory of one search.
type machine struct {
	prog      *syntax.Prog
	now, next threads
}

func newMachine(prog *syntax.Prog) *machine {
	n := len(prog.Inst)
	list := func() threads { return threads{make([]thread, 0, n), make([]uint32, n)} }
	return &machine{prog, list(), list()}
}

func decode(text []byte) (rune, int) {
	if len(text) == 0 {
		return -1, 0
	}
	return utf8.DecodeRune(text)
}

// run searches the text.
func (m *machine) run(p *pattern, text []byte) (best group, matched bool) {
	m.now.dense = m.now.dense[:0]
	before, pos := rune(-1), 0
	for {
		if len(m.now.dense) == 0 {
			if matched || p.anchored && pos > 0 {
				break
			}
			if skip := bytes.Index(text[pos:], p.prefix); skip < 0 {
				break
			} else if skip > 0 {
				pos += skip
				before, _ = utf8.DecodeLastRune(text[:pos])
			}
		}
		r, width := decode(text[pos:])
		if !matched && (pos == 0 || !p.anchored) {
			m.add(&m.now, uint32(m.prog.Start), pos, syntax.EmptyOpContext(before, r), group{-1, -1}) //nolint:gosec // G115: an index of the program
		}
		if g, ok := m.step(text, pos, r, width); ok {
			best, matched = g, true
		}
		m.now, m.next = m.next, m.now
		if width == 0 {
			break
		}
		before = r
		pos += width
	}
	return best, matched
}

// step leads each alternative over one character. One that is a match ends those that are less preferred.
func (m *machine) step(text []byte, pos int, r rune, width int) (g group, matched bool) {
	m.next.dense = m.next.dense[:0]
	behind, _ := decode(text[pos+width:])
	condition := syntax.EmptyOpContext(r, behind)
	for i := range m.now.dense {
		t := m.now.dense[i]
		in := &m.prog.Inst[t.pc]
		over := false
		switch in.Op {
		case syntax.InstMatch:
			return t.group, true
		case syntax.InstRune, syntax.InstRune1:
			over = in.MatchRune(r)
		case syntax.InstRuneAny:
			over = true
		case syntax.InstRuneAnyNotNL:
			over = r != '\n'
		default:
			continue
		}
		if over && width > 0 {
			m.add(&m.next, in.Out, pos+width, condition, t.group)
		}
	}
	return g, false
}

// add takes in an alternative, and follows it up to the instructions that read a character.
func (m *machine) add(l *threads, pc uint32, pos int, condition syntax.EmptyOp, g group) {
	if l.has(pc) {
		return
	}
	l.sparse[pc] = uint32(len(l.dense)) //nolint:gosec // G115: an index of the program
	l.dense = append(l.dense, thread{pc, g})
	in := &m.prog.Inst[pc]
	switch in.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		m.add(l, in.Out, pos, condition, g)
		m.add(l, in.Arg, pos, condition, g)
	case syntax.InstEmptyWidth:
		if syntax.EmptyOp(in.Arg)&^condition == 0 { //nolint:gosec // G115: regexp/syntax stores an EmptyOp in Arg
			m.add(l, in.Out, pos, condition, g)
		}
	case syntax.InstNop:
		m.add(l, in.Out, pos, condition, g)
	case syntax.InstCapture:
		switch in.Arg {
		case 2:
			g.start = pos
		case 3:
			g.end = pos
		}
		m.add(l, in.Out, pos, condition, g)
	}
}
