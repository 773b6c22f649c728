package suite

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A Finding is what was full when a service broke, by the samples of the stage that was bad and of the last that was good.
type Finding struct {
	Good, Bad *StageResult // Good is nil where the lowest load was bad
	Status    Status       // of Bad
	Full      []Filled     // the one that was full from the lowest load on first
	Known     []resource   // what was looked at
	Unknown   []resource
}

// Filled is a resource that was full.
type Filled struct {
	resource
	From float64 // the lowest load from which on it was
}

// WhatBroke compares the stages around the breaking point; nil where there is none.
func WhatBroke(stages []StageResult, b Breaking) *Finding {
	if b.Failed == 0 || b.Status == NoMore {
		return nil
	}
	f := &Finding{Status: b.Status}
	var upTo []*StageResult
	for i := range stages {
		if stages[i].Rate <= b.Failed {
			upTo = append(upTo, &stages[i])
		}
	}
	slices.SortStableFunc(upTo, func(x, y *StageResult) int { return int(x.Rate - y.Rate) })
	f.Bad = upTo[len(upTo)-1]
	for _, st := range upTo {
		if st.Rate == b.Sustained {
			f.Good = st
		}
	}
	for _, of := range broken {
		u := of.use(f.Bad)
		if !u.Known {
			f.Unknown = append(f.Unknown, of)
			continue
		}
		f.Known = append(f.Known, of)
		if u.Share < of.Full {
			continue
		}
		from := f.Bad.Rate
		for _, st := range slices.Backward(upTo) {
			if u := of.use(st); !u.Known || u.Share < of.Full {
				break
			}
			from = st.Rate
		}
		f.Full = append(f.Full, Filled{of, from})
	}
	slices.SortStableFunc(f.Full, func(x, y Filled) int { return int(x.From - y.From) })
	return f
}

// String says what broke, in sentences.
func (f *Finding) String() string {
	if len(f.Full) == 0 {
		text := "nothing that was measured was full at " + f.Bad.Title
		if len(f.Known) > 0 {
			text += ": " + f.list(f.Known, true)
		}
		if len(f.Unknown) > 0 {
			text += "; not known: " + f.list(f.Unknown, false)
		}
		return text
	}
	first := f.Full[0]
	text := fmt.Sprintf("%s: full from %s/s on, %s at %s", first.Name, count(first.From), first.use(f.Bad).Text, f.Bad.Title)
	if f.Good != nil {
		text += fmt.Sprintf(", %s at %s, which was good", first.use(f.Good).Text, f.Good.Title)
	}
	var same, later, rest []resource
	for _, of := range f.Full[1:] {
		if of.From == first.From {
			same = append(same, of.resource)
		} else {
			later = append(later, of.resource)
		}
	}
	for _, of := range f.Known {
		if !slices.ContainsFunc(f.Full, func(full Filled) bool { return full.Name == of.Name }) && strings.HasPrefix(of.Name, "CPU of") {
			rest = append(rest, of)
		}
	}
	for _, part := range []struct {
		words string
		of    []resource
	}{{"full from the same load on: ", same}, {"full later: ", later}, {"not full: ", rest}} {
		if len(part.of) > 0 {
			text += "; " + part.words + f.list(part.of, true)
		}
	}
	return text
}

// list names resources, with what the bad stage took of them or without.
func (f *Finding) list(all []resource, taken bool) string {
	var out []string
	for _, of := range all {
		text := of.Name
		if taken {
			text += " " + of.use(f.Bad).Text
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// advice is what to do about it.
func (f *Finding) advice() string {
	if len(f.Full) > 0 {
		return f.Full[0].Advice
	}
	if f.Status == ByGenerator {
		return generatorAdvice
	}
	return noAdvice
}

const generatorAdvice = "give the load generator cores of its own, or more machines (--runner K/N), and run again"

// facts are what broke, and what to do about it.
func (f *Finding) facts() []verdict.Fact {
	if f == nil {
		return nil
	}
	name := "what broke"
	if f.Status == ByGenerator {
		name = "what was full"
	}
	return []verdict.Fact{{Name: name, Value: f.String()}, {Name: "advice", Value: f.advice()}}
}

// table is each resource in the two stages.
func (f *Finding) table() verdict.Table {
	t := verdict.Table{Title: "What was full", Note: "by the samples of the last load that was good and of the first that was not", Columns: []string{"resource", "good", f.Bad.Title, "full from"}}
	if f.Good != nil {
		t.Columns[1] = f.Good.Title
	}
	for _, of := range broken {
		good, from := "–", "–"
		if f.Good != nil {
			good = of.use(f.Good).Brief
		}
		for _, full := range f.Full {
			if full.Name == of.Name {
				from = count(full.From) + "/s"
			}
		}
		t.Add(of.Name, good, of.use(f.Bad).Brief, from)
	}
	return t
}
