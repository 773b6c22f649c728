package service

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Mistakes are the errors in a description, one sentence each, in the order of the fields.
type Mistakes []string

func (m Mistakes) Error() string { return strings.Join(m, "\n") }

type mistake struct {
	at       int64
	sentence string
}

type mistakes []mistake

func (m *mistakes) add(at int64, format string, args ...any) {
	*m = append(*m, mistake{at, oneLine(fmt.Sprintf(format, args...))})
}

// oneLine replaces control characters, which names in a description may contain, with Go's escapes.
func oneLine(text string) string {
	var out strings.Builder
	for _, r := range text {
		if r < ' ' || r == 0x7f {
			quoted := strconv.QuoteRune(r)
			out.WriteString(quoted[1 : len(quoted)-1])
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}

func (m mistakes) sentences() Mistakes {
	slices.SortStableFunc(m, func(a, b mistake) int { return int(a.at - b.at) })
	var out Mistakes
	for _, mistake := range m {
		out = append(out, mistake.sentence)
	}
	return out
}

// Nearest returns the most similar of several names, or "" if none is similar. Similar names differ by at most one edit
// per three letters of the longer name.
func Nearest(name string, names []string) string {
	nearest, shortest := "", math.MaxInt
	for _, candidate := range names {
		d := distance(strings.ToLower(name), strings.ToLower(candidate))
		if d <= max(len(name), len(candidate))/3 && d < shortest {
			nearest, shortest = candidate, d
		}
	}
	return nearest
}

// distance returns the edit distance of two strings, in which a swap of two adjacent characters is one edit.
func distance(a, b string) int {
	secondLast, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			change := last[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, row[j]+1, last[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], secondLast[j-1]+1)
			}
		}
		secondLast, last = last, row
	}
	return last[len(b)]
}

func enumerate(names []string, separator, last string) string {
	if len(names) == 1 {
		return names[0]
	}
	return strings.Join(names[:len(names)-1], separator) + last + names[len(names)-1]
}
