package model

import (
	"fmt"
	"hash/fnv"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// A Kind is a kind of faulty answer.
type Kind uint8

// The kinds of faults. K is the number in a Fault.
const (
	None           Kind = iota
	Truncate            // the body ends cleanly after chunk K
	Cut                 // the connection closes after chunk K, inside the body
	Reset               // the connection is reset (RST) after chunk K
	Error               // an error event follows chunk K, then the body ends cleanly
	Stall               // nothing follows chunk K; the connection stays open
	NoTerminal          // everything but the terminal event is sent, then the body ends cleanly
	Empty               // status 200 without any event
	Double              // chunk K is sent twice
	Drop                // chunk K is not sent
	Swap                // chunk K is sent after chunk K+1
	Corrupt             // the checksum of chunk K is wrong
	Linger              // the connection stays open after the terminal event
	ChunkAfterEnd       // the last chunk is sent again after the terminal event
	DoubleTerminal      // the terminal event is sent twice
	LengthLimit         // the answer has K chunks and ends at its length limit (without K: all chunks)
	Burst               // all chunks are sent at the time of the last one
	Busy                // status 429 with Retry-After
	Failed              // status 500
)

var kinds = [...]string{
	"none", "truncate", "cut", "reset", "error", "stall", "noterminal", "empty", "double", "drop", "swap", "corrupt",
	"linger", "after", "twice", "length", "burst", "429", "500",
}

// Help describes the syntax of orders and faults for the help of the command.
const Help = `A line of the last user message that starts with "soak" configures the response:
  soak id=run-17 chunks=40 size=0 delay=10ms ttft=50ms fault=truncate@20
  Each chunk has the text "[k/N:CRC] ": CRC is the CRC-32 of "ID/k/N" in hexadecimal digits.
Faults: NAME or NAME@K, where K is the number of a chunk (default: the middle chunk; for the fault length: the last);
  --fault also accepts the share of requests that have the fault, as in truncate@20:0.01
  no terminal event: truncate (clean end after K), cut (FIN inside the body), reset (RST), error (error event),
                     stall (silent after K), noterminal (all other events), empty (no event)
  one chunk:         double, drop, swap (after its successor), corrupt (wrong checksum)
  the end:           linger (stays open), after (one more chunk), twice (terminal event twice),
                     length (K chunks, ended by the length limit), burst (all chunks at the time of the last)
  no stream:         429 (with Retry-After), 500
`

// String returns the name of the kind.
func (k Kind) String() string { return kinds[k] }

// status returns the status of the response. A response that is not a stream can report an error only by its status.
func (k Kind) status(stream bool) int {
	switch {
	case k == Busy:
		return http.StatusTooManyRequests
	case k == Failed, k == Error && !stream:
		return http.StatusInternalServerError
	}
	return http.StatusOK
}

// endsAtChunk reports whether no chunk follows chunk K.
func (k Kind) endsAtChunk() bool { return k >= Truncate && k <= Stall }

// needsChunk reports whether K must be the number of a chunk, not 0.
func (k Kind) needsChunk() bool { return k >= Double && k <= Corrupt || k == LengthLimit }

// middle is the K of a fault whose text has no number. It means the middle chunk or, for LengthLimit, the last chunk.
const middle = -1

// A Fault is a kind, and the chunk to which the kind refers. The zero value means no fault.
type Fault struct {
	Kind Kind
	K    int // number of a chunk from 1; 0: before the first
}

// parseFault parses NAME or NAME@K.
func parseFault(text string) (Fault, error) {
	name, number, hasNumber := strings.Cut(text, "@")
	kind := slices.Index(kinds[:], name)
	if kind < 0 {
		return Fault{}, fmt.Errorf("fault must be one of %s, got %q", strings.Join(kinds[:], " "), name)
	}
	f := Fault{Kind: Kind(kind), K: middle} // #nosec G115 -- an index of kinds
	if !hasNumber {
		return f, nil
	}
	minimum := 0
	if f.Kind.needsChunk() {
		minimum = 1
	}
	k, err := strconv.Atoi(number)
	if err != nil || k < minimum || k > MaxChunks {
		return Fault{}, fmt.Errorf("chunk of the fault %s must be a number from %d to %d, got %q",
			name, minimum, MaxChunks, number)
	}
	f.K = k
	return f, nil
}

// limitedTo returns the fault for an answer of n chunks, with K between 0 and n.
func (f Fault) limitedTo(n int) Fault {
	switch {
	case f.K == middle && f.Kind == LengthLimit:
		f.K = n
	case f.K == middle:
		f.K = (n + 1) / 2
	}
	f.K = min(f.K, n)
	if f.Kind == Swap && f.K == n { // the last chunk has no successor
		f.K = max(n-1, 1)
	}
	return f
}

// String returns NAME@K, or "" for no fault.
func (f Fault) String() string {
	if f.Kind == None {
		return ""
	}
	return f.Kind.String() + "@" + strconv.Itoa(f.K)
}

// numbersAt returns the numbers of the chunks to send in place of chunk i of n: none, one or two.
func (f Fault) numbersAt(i, n int) (numbers [2]int, count int) {
	switch {
	case f.Kind == Drop && i == f.K:
		return numbers, 0
	case f.Kind == Double && i == f.K:
		return [2]int{i, i}, 2
	case f.Kind == Swap && i == f.K && i < n:
		return [2]int{i + 1}, 1
	case f.Kind == Swap && i == f.K+1:
		return [2]int{i - 1}, 1
	}
	return [2]int{i}, 1
}

// A Share is a fault, and the share of the requests that have it.
type Share struct {
	Fault
	Share float64 // 0 to 1
}

// AddShares returns shares, followed by the shares in text. Text has the form NAME@K:SHARE;NAME@K:SHARE. Each @K and
// :SHARE is optional; the default share is 1.
func AddShares(shares []Share, text string) ([]Share, error) {
	shares = slices.Clone(shares)
	for part := range strings.SplitSeq(text, ";") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, number, hasShare := strings.Cut(part, ":")
		fault, err := parseFault(name)
		if err != nil {
			return nil, err
		}
		share := 1.0
		if hasShare {
			share, err = strconv.ParseFloat(number, 64)
		}
		if err != nil || math.IsNaN(share) || share < 0 || share > 1 {
			return nil, fmt.Errorf("share of the fault %s must be a number from 0 to 1, got %q", name, number)
		}
		shares = append(shares, Share{Fault: fault, Share: share})
	}
	var sum float64
	for _, s := range shares {
		sum += s.Share
	}
	if sum > 1+1e-9 {
		return nil, fmt.Errorf("sum of the shares of all faults must be at most 1, got %g", sum)
	}
	return shares, nil
}

// draw selects the fault of a request. The result depends only on the shares, the seed and the id of the request.
func draw(shares []Share, seed uint64, id string) Fault {
	if len(shares) == 0 {
		return Fault{}
	}
	hash := fnv.New64a()
	_, _ = fmt.Fprintf(hash, "%d/%s", seed, id)
	random := float64(mix(hash.Sum64())>>11) / (1 << 53) // from 0 to below 1
	for _, s := range shares {
		if random < s.Share {
			return s.Fault
		}
		random -= s.Share
	}
	return Fault{}
}

// mix spreads the effect of the last hashed bytes over all bits of an FNV hash (the finalizer of MurmurHash3).
func mix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
