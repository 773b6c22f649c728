package process

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A CPUList has the numbers of the logical CPUs, or hardware threads, that a process may run on. An empty list means
// all CPUs.
type CPUList []int

// Halves divides c into two halves; the second may be larger. It keeps the threads of one core together, because they
// share execution units. core returns the name of a thread's core. If all threads belong to one core, Halves divides
// them and threads is true. If there are fewer than two threads, both halves are empty.
func (c CPUList) Halves(core func(int) string) (first, second CPUList, threads bool) {
	if len(c) < 2 {
		return nil, nil, false
	}
	threadsOfCore := map[string]CPUList{}
	for _, n := range c {
		threadsOfCore[core(n)] = append(threadsOfCore[core(n)], n)
	}
	if len(threadsOfCore) < 2 {
		return c[:len(c)/2], c[len(c)/2:], true
	}
	byCore := slices.SortedFunc(maps.Values(threadsOfCore), func(a, b CPUList) int { return a[0] - b[0] })
	middle := len(byCore) / 2
	return slices.Sorted(slices.Values(slices.Concat(byCore[:middle]...))), slices.Sorted(slices.Values(slices.Concat(byCore[middle:]...))), false
}

// String returns the list in the notation of taskset(1).
func (c CPUList) String() string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint([]int(c)), "[]"), " ", ",")
}
