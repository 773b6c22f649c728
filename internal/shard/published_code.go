package shard

// A message takes two characters: how far behind its schedule it was sent, and how long its answer took, each in
// its column. The characters are those that JSON leaves alone, so that gzip sees them as they are: its Huffman code
// then takes the place of one of our own. An hour at 1000/s is 4 MB; as varints in base64 it would be 5.5 MB.

// unitUS is the unit of both, in microseconds. Lags are rounded down to it, answers up.
const unitUS = 500

const (
	lastDigits    = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_" // last digit of a number, of base 64
	leadingDigits = " #$%'()*+,./:;=@[]^`{|}~"                                         // those before it, of base 24
	refused       = '!'                                                                // status and time of the answer follow
	open          = '?'                                                                // nothing follows

	mostUnits  = uint64(mostLength / (unitUS * 1000))
	mostStatus = 999
)

// digit is what each character is worth: those of leadingDigits from len(lastDigits) on, -1 for none.
var digit = func() (worth [256]int8) {
	for i := range worth {
		worth[i] = -1
	}
	for i, c := range []byte(lastDigits + leadingDigits) {
		worth[c] = int8(i)
	}
	return worth
}()

func appendNumber(dst []byte, v uint64) []byte {
	var text [20]byte
	i := len(text) - 1
	text[i] = lastDigits[v%uint64(len(lastDigits))]
	for v /= uint64(len(lastDigits)); v > 0; v /= uint64(len(leadingDigits)) {
		i--
		text[i] = leadingDigits[v%uint64(len(leadingDigits))]
	}
	return append(dst, text[i:]...)
}

// number takes a number up to most off the front of text.
func number(text *[]byte, most uint64) (v uint64, ok bool) {
	for i, c := range *text {
		switch d := digit[c]; {
		case d < 0 || v > most:
			return 0, false
		case int(d) < len(lastDigits):
			v = v*uint64(len(lastDigits)) + uint64(d)
			*text = (*text)[i+1:]
			return v, v <= most
		default:
			v = v*uint64(len(leadingDigits)) + uint64(int(d)-len(lastDigits))
		}
	}
	return 0, false
}

// coded is a message in units.
type coded struct {
	lag, answer uint64
	status      uint16
	state       MessageState
}

func (c *column) append(m coded) {
	c.count++
	c.lags = appendNumber(c.lags, m.lag)
	switch m.state {
	case Open:
		c.answers = append(c.answers, open)
		return
	case Refused:
		c.answers = appendNumber(append(c.answers, refused), uint64(m.status))
	case Confirmed:
	}
	c.answers = appendNumber(c.answers, m.answer)
}

// take takes the first message off the column, and says whether one is there.
func (c *column) take() (m coded, ok bool) {
	if m.lag, ok = number(&c.lags, mostUnits); !ok || len(c.answers) == 0 {
		return m, false
	}
	c.count--
	m.state = Confirmed
	switch c.answers[0] {
	case open:
		c.answers = c.answers[1:]
		m.state = Open
		return m, true
	case refused:
		c.answers = c.answers[1:]
		status, ok := number(&c.answers, mostStatus)
		if !ok {
			return m, false
		}
		m.state, m.status = Refused, uint16(status) //nolint:gosec // G115: at most mostStatus
	}
	m.answer, ok = number(&c.answers, mostUnits)
	return m, ok
}

// next is take for a column that was checked.
func (c *column) next() coded {
	m, _ := c.take()
	return m
}
