package ledger

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestResponseStates(t *testing.T) {
	const ms = time.Millisecond
	content, done := Chunk{Content: true}, Chunk{Done: true}
	for name, c := range map[string]struct {
		blocks []Chunk
		by     Closing
		want   ResponseState
	}{
		"complete":                           {[]Chunk{content, done}, ClosedInOrder, ResponseComplete},
		"reset after the terminal event":     {[]Chunk{content, done}, ClosedBroken, ResponseComplete},
		"terminal event with content":        {[]Chunk{{Content: true, Done: true}}, ClosedInOrder, ResponseComplete},
		"abandoned after the terminal event": {[]Chunk{content, done}, ClosedOnPurpose, ResponseComplete},
		"truncated":                          {[]Chunk{content}, ClosedInOrder, ResponseTruncated},
		"only a role":                        {[]Chunk{{}}, ClosedInOrder, ResponseTruncated},
		"reset":                              {[]Chunk{content}, ClosedBroken, ResponseTruncated},
		"reset before the first event":       {nil, ClosedBroken, ResponseTruncated},
		"error event":                        {[]Chunk{content, {Failed: true}}, ClosedInOrder, ResponseError},
		"error event and terminal event":     {[]Chunk{{Failed: true}, done}, ClosedInOrder, ResponseError},
		"refused":                            {nil, NeverOpened, ResponseRefused},
		"empty":                              {nil, ClosedInOrder, ResponseEmpty},
		"only the terminal event":            {[]Chunk{done}, ClosedInOrder, ResponseEmpty},
		"idle":                               {[]Chunk{content}, ClosedSilent, ResponseIdle},
		"idle from the start":                {nil, ClosedSilent, ResponseIdle},
		"lingering":                          {[]Chunk{content, done}, ClosedSilent, ResponseLingering},
		"lingering at the end":               {[]Chunk{content, done}, ClosedAtEnd, ResponseLingering},
		"terminal event twice":               {[]Chunk{content, done, done}, ClosedInOrder, ResponseAfterDone},
		"content after the terminal event":   {[]Chunk{content, done, content}, ClosedInOrder, ResponseAfterDone},
		"unfinished":                         {[]Chunk{content}, ClosedAtEnd, ResponseUnfinished},
		"abandoned":                          {[]Chunk{content}, ClosedOnPurpose, ResponseAbandoned},
	} {
		var r Response
		for i := range c.blocks {
			c.blocks[i].At = ms
			r.Block(&c.blocks[i])
		}
		r.Close(2*ms, c.by)
		require.Equal(t, c.want, r.State, name)
	}
}

// A gateway may add a terminal event to a truncated response; the numbers in the text show the truncation.
func TestResponseThatEndsBeforeItsLastNumber(t *testing.T) {
	var r Response
	for k := range uint64(20) {
		r.Block(&Chunk{Content: true})
		r.AddNumber(k+1, 40, true)
	}
	r.Block(&Chunk{Done: true})
	r.Close(0, ClosedInOrder)
	require.Equal(t, ResponseTruncated, r.State)
	require.Equal(t, Totals{Received: 20, Missed: 20, Expected: 40}, r.Totals())
	number, ok := r.Missing()
	require.True(t, ok)
	require.Equal(t, uint64(21), number)
}

// A chunk may be changed in transit. Its number is then wrong, or it does not match the description.
func TestResponseWithChangedChunk(t *testing.T) {
	for _, numbered := range []bool{true, false} {
		var r Response
		for k := range uint64(5) {
			r.Block(&Chunk{Content: true, Corrupted: !numbered && k == 2})
			if numbered {
				r.AddNumber(k+1, 5, k != 2)
			}
		}
		r.Block(&Chunk{Done: true})
		r.Close(0, ClosedInOrder)
		require.Equal(t, ResponseComplete, r.State)
		require.Equal(t, Totals{Received: 4, Corrupted: 1, Expected: 5}, r.Totals())
	}
}

// The numbers of the service do not count the chunks of a response that has numbers in its text.
func TestResponseFirstNumber(t *testing.T) {
	var r Response
	r.Block(&Chunk{Content: true, Seq: 1, HasSeq: true})
	_, ok := r.FirstNumber()
	require.True(t, ok)
	r.AddNumber(1, 2, true)
	_, ok = r.FirstNumber()
	require.False(t, ok)
}

// A service that splits its text in UTF-16 sends the halves of an emoji in two chunks. The text is then not compared,
// and the coverage shows this.
func TestResponseWithHalfACharacterIsNotCovered(t *testing.T) {
	var r Response
	r.Block(&Chunk{Content: true})
	r.Text([]byte("a\ufffd"))
	r.Block(&Chunk{Content: true})
	r.Text([]byte("\ufffd"))
	r.StateText([]byte("a😀"))
	r.Block(&Chunk{Done: true})
	r.Close(0, ClosedInOrder)
	require.Equal(t, Totals{Expected: 2, Received: 2}, r.Totals())
	require.Equal(t, CoversNone, r.Coverage())
}

func TestStatementsOfTheService(t *testing.T) {
	var r Response
	for _, part := range []string{"one ", "two ", "three"} {
		r.Block(&Chunk{Content: true})
		r.Text([]byte(part))
	}
	r.StateText([]byte("one two three"))
	require.Zero(t, r.Totals().Missed)
	require.Equal(t, CoversAll, r.Coverage())
	r.Text([]byte("four"))
	r.StateText([]byte("three and four"))
	require.Equal(t, uint64(1), r.Totals().Missed, "a differing text must count as at least one missing chunk")

	for stated, want := range map[string]Totals{
		"one two two":   {Expected: 3, Received: 3},
		"one two":       {Expected: 3, Received: 3, Duplicated: 1},
		"one two two 3": {Expected: 4, Received: 3, Missed: 1},
		"two one two":   {Expected: 3, Received: 2, Corrupted: 1},
	} {
		for _, numbered := range []bool{true, false} {
			r = Response{}
			for n, part := range []string{"one ", "two ", "two"} {
				r.Block(&Chunk{Content: true, HasSeq: numbered, Seq: uint64(n)})
				r.Text([]byte(part))
			}
			r.StateText([]byte(stated))
			require.Equal(t, want, r.Totals(), stated)
		}
	}

	r = Response{}
	r.Block(&Chunk{Content: true})
	r.Text(nil)
	r.StateChunks(3)
	require.Equal(t, Totals{Received: 1, Missed: 2, Expected: 3}, r.Totals())
}

// A chunk has at least one token, so the number of tokens is only an upper bound for the number of chunks.
func TestResponseWithMoreChunksThanTokens(t *testing.T) {
	for tokens, duplicated := range map[uint64]uint64{0: 3, 2: 1, 3: 0, 9: 0} {
		var r Response
		for range 3 {
			r.Block(&Chunk{Content: true})
			r.StateTokens(1) // an interim statement
		}
		r.StateTokens(tokens)
		r.Block(&Chunk{Done: true})
		r.Close(0, ClosedInOrder)
		require.Equal(t, Totals{Received: 3, Expected: 3, Duplicated: duplicated}, r.Totals(), tokens)
		require.Equal(t, CoversNone, r.Coverage())
	}
}

func TestResponseTimes(t *testing.T) {
	const ms = time.Millisecond
	var r Response
	for _, at := range []Instant{50 * ms, 60 * ms, 60 * ms, 60 * ms, 75 * ms} {
		r.Block(&Chunk{At: at, Content: true})
	}
	require.Equal(t, 50*ms, r.First)
	require.Equal(t, []uint32{10_000, 0, 0, 15_000}, r.Gaps)
}

// The test compares the numbers of one response with a model, while chunks are dropped, doubled and swapped at random.
func TestSequence(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 20_000 {
		base, n := uint64(random.IntN(2)), uint64(1+random.IntN(12))
		var sent []uint64
		dropped, doubled := uint64(0), uint64(0)
		for k := base; k < base+n; k++ {
			switch inside := k > base && k+1 < base+n; {
			case inside && random.IntN(8) == 0:
				dropped++
			case random.IntN(8) == 0:
				sent = append(sent, k, k)
				doubled++
			default:
				sent = append(sent, k)
			}
		}
		swapped := uint64(0)
		for i := 1; i+1 < len(sent); i++ {
			if random.IntN(6) == 0 && sent[i] < sent[i+1] && (i+2 >= len(sent) || sent[i+2] > sent[i+1]) && sent[i-1] < sent[i] {
				sent[i], sent[i+1] = sent[i+1], sent[i]
				swapped++
				i += 2
			}
		}
		var s sequence
		for _, k := range sent {
			require.True(t, s.add(k))
		}
		require.Equal(t, []uint64{dropped, doubled, swapped, n - dropped}, []uint64{s.missed(), s.duplicated, s.reordered, s.received}, "%v", sent)
	}
}

func TestSequenceRejectsJump(t *testing.T) {
	var s sequence
	require.True(t, s.add(1))
	require.False(t, s.add(1<<40))
	require.Zero(t, s.missed())
}
