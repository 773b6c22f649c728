package ledger

// startsWithoutResume reports whether the next message is the first of a stream that does not resume the previous one.
func (c *deliveries) startsWithoutResume() bool {
	span := c.openSpan()
	return c.stream.count > 1 && !c.hasMessage && (span == nil || !span.Resumed)
}

// startsAnew reports whether the first number of a stream is no nearer to the highest number of the client than to the
// lowest one. The stream then has its own numbers, of which the first ones may be lost. Otherwise it repeats or
// continues the numbers of the previous stream.
func (c *deliveries) startsAnew(number uint64) bool {
	return number <= c.first || number <= c.numbers.highest && number-c.first <= c.numbers.highest-number
}

// restart starts a new numbering at the lowest number of the client. The holes become findings, because they can no
// longer be filled.
//
//go:noinline
func (c *deliveries) restart(number uint64, at Instant) {
	for _, h := range c.numbers.restart() {
		c.find(h.finding())
	}
	if c.corruptions != nil {
		c.corruptions.guesses = nil
	}
	if c.numbers.highest = number; number <= c.first {
		c.first = number
		return
	}
	c.numbers.open(hole{from: c.first, to: number - 1, at: at})
}
