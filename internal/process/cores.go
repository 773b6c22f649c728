package process

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Cores are the numbers of the cores that a process may run on, as the kernel counts them: each thread of a core is one. None
// stands for all.
type Cores []int

// Halves shares them out, the second half being the larger one, and never parts the threads of one core: they take turns at
// its units, so one would slow the other. Threads with the same name of a core are of one. Where all are of one core they are
// parted nevertheless, and threads is true. Of a single one nobody gets any.
func (c Cores) Halves(core func(int) string) (first, second Cores, threads bool) {
	if len(c) < 2 {
		return nil, nil, false
	}
	of := map[string]Cores{}
	for _, n := range c {
		of[core(n)] = append(of[core(n)], n)
	}
	if len(of) < 2 {
		return c[:len(c)/2], c[len(c)/2:], true
	}
	whole := slices.SortedFunc(maps.Values(of), func(a, b Cores) int { return a[0] - b[0] })
	half := len(whole) / 2
	return slices.Sorted(slices.Values(slices.Concat(whole[:half]...))), slices.Sorted(slices.Values(slices.Concat(whole[half:]...))), false
}

// String lists them as taskset(1) takes them.
func (c Cores) String() string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint([]int(c)), "[]"), " ", ",")
}
