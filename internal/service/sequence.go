package service

import (
	"bytes"
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// sequence is the usual pattern, such as ^\d+:(\d+)$ or seq=(\d+): characters and runs of characters one after
// the other, in which the next byte says whether a run goes on. It needs no alternatives, and takes a tenth of
// their time.
type sequence struct {
	steps    []step
	first    int // step that the group begins with
	behind   int // step behind the group
	prefix   []byte
	anchored bool // it begins with the text
	toEnd    bool // it ends with the text
	grouped  bool
}

// step is a character of ASCII, or a run of them.
type step struct {
	set  [2]uint64 // a bit for each character
	run  bool
	none bool // a run may be empty
}

func (s *step) has(b byte) bool { return b < utf8.RuneSelf && s.set[b>>6]&(1<<(b&63)) != 0 }

func (s *step) meets(o *step) bool { return s.set[0]&o.set[0]|s.set[1]&o.set[1] != 0 }

// sequenceOf reads an expression as a sequence, nil if it is none.
func sequenceOf(tree *syntax.Regexp) *sequence {
	q := &sequence{}
	all := []*syntax.Regexp{tree}
	if tree.Op == syntax.OpConcat {
		all = tree.Sub
	}
	for i, one := range all {
		switch {
		case one.Op == syntax.OpBeginText && i == 0:
			q.anchored = true
		case one.Op == syntax.OpEndText && i == len(all)-1:
			q.toEnd = true
		case one.Op == syntax.OpCapture && !q.grouped:
			q.first, q.grouped = len(q.steps), true
			inside := one.Sub
			if one.Sub[0].Op == syntax.OpConcat {
				inside = one.Sub[0].Sub
			}
			for _, in := range inside {
				if !q.take(in) {
					return nil
				}
			}
			q.behind = len(q.steps)
		case !q.take(one):
			return nil
		}
	}
	if !q.grouped || !q.decided() {
		return nil
	}
	for _, s := range q.steps {
		c, single := s.single()
		if !single {
			break
		}
		q.prefix = append(q.prefix, c)
	}
	if !q.anchored && len(q.prefix) == 0 {
		return nil
	}
	return q
}

// take appends what is a character or a run.
func (q *sequence) take(one *syntax.Regexp) bool {
	if one.Flags&syntax.FoldCase != 0 && one.Op == syntax.OpLiteral {
		return false
	}
	switch one.Op {
	case syntax.OpLiteral:
		for _, r := range one.Rune {
			if !q.class([]rune{r, r}) {
				return false
			}
		}
		return true
	case syntax.OpCharClass:
		return q.class(one.Rune)
	case syntax.OpPlus, syntax.OpStar:
		in := one.Sub[0]
		if one.Flags&syntax.NonGreedy != 0 || in.Op == syntax.OpLiteral && len(in.Rune) > 1 || in.Op != syntax.OpLiteral && in.Op != syntax.OpCharClass || !q.take(in) {
			return false
		}
		last := &q.steps[len(q.steps)-1]
		last.run, last.none = true, one.Op == syntax.OpStar
		return true
	}
	return false
}

// class appends one character of some ranges.
func (q *sequence) class(ranges []rune) bool {
	var s step
	for pair := range slices.Chunk(ranges, 2) {
		from, to := pair[0], pair[1]
		if to >= utf8.RuneSelf {
			return false
		}
		for r := from; r <= to; r++ {
			s.set[r>>6] |= 1 << (r & 63)
		}
	}
	q.steps = append(q.steps, s)
	return true
}

// decided says that no run could end before a byte that it has taken.
func (q *sequence) decided() bool {
	for i := range q.steps {
		if !q.steps[i].run {
			continue
		}
		for j := i + 1; j < len(q.steps); j++ {
			if q.steps[i].meets(&q.steps[j]) {
				return false
			}
			if !q.steps[j].none {
				break
			}
		}
	}
	return true
}

// single is the one character that a step takes.
func (s *step) single() (byte, bool) {
	found, n := byte(0), 0
	for b := range byte(utf8.RuneSelf) {
		if s.has(b) {
			found = b
			n++
		}
	}
	return found, n == 1 && !s.run
}

// run searches a text. It is not sure where that would take longer than to follow all alternatives at once.
func (q *sequence) run(text []byte) (g group, ok, sure bool) {
	for pos, work := 0, 0; work <= 4*len(text)+64; pos++ {
		if skip := bytes.Index(text[pos:], q.prefix); skip < 0 || q.anchored && pos+skip > 0 {
			return g, false, true
		} else {
			pos += skip
		}
		end := 0
		if g, end, ok = q.try(text, pos); ok {
			return g, true, true
		}
		if q.anchored || pos == len(text) {
			return g, false, true
		}
		work += end - pos
	}
	return g, false, false
}

// try matches at one position; end is how far it came.
func (q *sequence) try(text []byte, pos int) (g group, end int, ok bool) {
	for i := range q.steps {
		if i == q.first {
			g.start = pos
		}
		if i == q.behind {
			g.end = pos
		}
		s := &q.steps[i]
		start := pos
		for pos < len(text) && s.has(text[pos]) {
			pos++
			if !s.run {
				break
			}
		}
		if pos == start && !s.none {
			return group{}, pos, false
		}
	}
	if q.first == len(q.steps) {
		g.start = pos
	}
	if q.behind == len(q.steps) {
		g.end = pos
	}
	if q.toEnd && pos < len(text) {
		return group{}, pos, false
	}
	return g, pos, true
}
