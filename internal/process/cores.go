package process

import (
	"fmt"
	"strings"
)

// Cores are the numbers of the cores that a process may run on; none stands for all.
type Cores []int

// Halves shares them out; the second half is the larger one. Of a single core nobody gets any.
func (c Cores) Halves() (first, second Cores) {
	if len(c) < 2 {
		return nil, nil
	}
	return c[:len(c)/2], c[len(c)/2:]
}

// String lists them as taskset(1) takes them.
func (c Cores) String() string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint([]int(c)), "[]"), " ", ",")
}
