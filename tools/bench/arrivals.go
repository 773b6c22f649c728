package main

import "time"

// An arrival is when one noop came in, in nanoseconds since 1970: at the socket by the
// kernel's stamp, which no load on the reader can delay, and at the reader.
type arrival struct{ kernel, reader int64 }

// roundGap separates rounds of noops: within one it is quiet for less, between two for more.
// Rounds of the measurement are a second apart.
const roundGap = int64(400 * time.Millisecond)

// spreads says of each round of noops that reached every connection how many seconds there
// were from its first arrival to its last, by the kernel's clock and by the readers'.
func spreads(conns []rawConn) (kernel, reader []float64) {
	start := int64(0)
	for i := range conns {
		for _, a := range conns[i].arrivals {
			if start == 0 || a.kernel < start {
				start = a.kernel
			}
		}
	}
	// The rounds come at a fixed beat, so half a second before the first arrival lies in
	// the quiet between two.
	start -= roundGap
	type round struct {
		n                      int
		kernel, reader, kl, rl int64
	}
	rounds := make(map[int64]*round)
	last := int64(0)
	for i := range conns {
		for _, a := range conns[i].arrivals {
			key := (a.kernel - start) / int64(time.Second)
			r := rounds[key]
			if r == nil {
				r = &round{kernel: a.kernel, reader: a.reader}
				rounds[key] = r
			}
			r.n++
			r.kernel, r.kl = min(r.kernel, a.kernel), max(r.kl, a.kernel)
			r.reader, r.rl = min(r.reader, a.reader), max(r.rl, a.reader)
			last = max(last, key)
		}
	}
	for key := range last + 1 {
		if r := rounds[key]; r != nil && r.n == len(conns) {
			kernel = append(kernel, float64(r.kl-r.kernel)/1e9)
			reader = append(reader, float64(r.rl-r.reader)/1e9)
		}
	}
	return kernel, reader
}
