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

// Halves divides the cores; the second half is the larger one. It keeps the threads of one core together, because
// they share its units and one would slow the other. core returns the name of a thread's core. If all threads belong
// to one core they are divided nevertheless, and threads is true. A single thread is not divided: both halves are
// empty.
func (c Cores) Halves(core func(int) string) (first, second Cores, threads bool) {
	if len(c) < 2 {
		return nil, nil, false
	}
	coresByPID := map[string]Cores{}
	for _, n := range c {
		coresByPID[core(n)] = append(coresByPID[core(n)], n)
	}
	if len(coresByPID) < 2 {
		return c[:len(c)/2], c[len(c)/2:], true
	}
	whole := slices.SortedFunc(maps.Values(coresByPID), func(a, b Cores) int { return a[0] - b[0] })
	half := len(whole) / 2
	return slices.Sorted(slices.Values(slices.Concat(whole[:half]...))), slices.Sorted(slices.Values(slices.Concat(whole[half:]...))), false
}

// String lists them as taskset(1) takes them.
func (c Cores) String() string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint([]int(c)), "[]"), " ", ",")
}
