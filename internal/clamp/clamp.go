// Package clamp converts counts between integer types, and limits them to the range of the result.
package clamp

import "math"

// Uint64 returns n, or 0 if n is negative.
func Uint64[N int | int64](n N) uint64 { return uint64(max(n, 0)) }

// Int returns n, or the largest int if n exceeds it.
func Int(n uint64) int { return int(min(n, math.MaxInt)) }

// Int64 returns n, or the largest int64 if n exceeds it.
func Int64(n uint64) int64 { return int64(min(n, math.MaxInt64)) }
