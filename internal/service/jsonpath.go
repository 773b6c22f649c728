package service

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

type segment struct {
	key   string
	index int // −1: the segment has a key
}

const maxSegments = 16

// parsePath parses a path of the steps .name, [0] and ['name'] after $. Other parts of JSONPath are errors, because a
// path must lead to one value.
func parsePath(text string) ([]segment, error) {
	rest, ok := strings.CutPrefix(text, "$")
	if !ok {
		return nil, errors.New("must have a JSON path that begins with $, such as $.data.seq")
	}
	var out []segment
	for rest != "" {
		step, after, err := parseSegment(rest)
		if err != nil {
			return nil, err
		}
		out, rest = append(out, step), after
	}
	switch {
	case len(out) == 0:
		return nil, errors.New("must be a path to a value in the payload, such as $.seq")
	case len(out) > maxSegments:
		return nil, fmt.Errorf("must be a path of at most %d steps", maxSegments)
	}
	return out, nil
}

func addPath(paths *[][]segment, path []segment) int {
	if i := slices.IndexFunc(*paths, func(p []segment) bool { return slices.Equal(p, path) }); i >= 0 {
		return i
	}
	*paths = append(*paths, path)
	return len(*paths) - 1
}

func parseSegment(text string) (s segment, rest string, err error) {
	switch {
	case strings.HasPrefix(text, ".."), strings.Contains(text, "*"):
		return s, "", errors.New("must be a path to one value, without .. and *")
	case text[0] == '.':
		end := strings.IndexAny(text[1:], ".[]'\" ")
		if end < 0 {
			end = len(text) - 1
		}
		s, rest = segment{key: text[1 : 1+end], index: -1}, text[1+end:]
		if s.key == "" || rest != "" && rest[0] != '.' && rest[0] != '[' {
			return s, "", errors.New("must have a name after each dot, or ['name'] for a name with dots, brackets, quotes or spaces")
		}
	case strings.HasPrefix(text, "['"), strings.HasPrefix(text, `["`):
		end := strings.Index(text[2:], text[1:2]+"]")
		if end < 0 {
			return s, "", errors.New("must end a name in brackets with " + text[1:2] + "]")
		}
		s, rest = segment{key: text[2 : 2+end], index: -1}, text[2+end+2:]
	case text[0] == '[':
		number, after, _ := strings.Cut(text[1:], "]")
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 || number[0] == '+' || !strings.Contains(text, "]") {
			return s, "", errors.New("must have a number of at least 0 or a quoted name in brackets")
		}
		s, rest = segment{index: n}, after
	default:
		return s, "", errors.New("must begin each step of a path with . or [")
	}
	return s, rest, nil
}
