package eventstream

import (
	"bytes"
	"fmt"
	"strconv"
	"time"
)

// field processes one line that is not blank, section 9.2.6.
func (p *Parser) field(line []byte) error {
	p.begun = true
	name, value, colon := bytes.Cut(line, []byte{':'})
	if colon && len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	switch string(name) {
	case "data":
		return p.join(&p.data, &p.hasData, value, "data")
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			p.nextID = append(p.nextID[:0], value...)
			p.hasID = true
		}
	case "event":
		p.name = append(p.name[:0], value...)
	case "retry":
		p.setRetry(value)
	case "":
		if colon {
			return p.join(&p.comment, &p.hasComment, value, "comments")
		}
	}
	return nil
}

// join appends a value to a buffer of values separated by LF.
func (p *Parser) join(to *[]byte, has *bool, value []byte, what string) error {
	if len(*to)+len(value) > p.limit {
		return fmt.Errorf("%w of %d bytes (%s)", ErrTooLong, p.limit, what)
	}
	if *has {
		*to = append(*to, '\n')
	}
	*to = p.extend(*to, value)
	*has = true
	return nil
}

// longestRetry bounds a retry field, so that it fits a time.Duration.
const longestRetry = 100 * 365 * 24 * time.Hour

// setRetry takes a value of ASCII digits only, in milliseconds.
func (p *Parser) setRetry(value []byte) {
	if len(value) == 0 || len(bytes.Trim(value, "0123456789")) > 0 {
		return
	}
	p.retry = longestRetry
	if ms, err := strconv.ParseInt(string(value), 10, 64); err == nil && ms < int64(longestRetry/time.Millisecond) {
		p.retry = time.Duration(ms) * time.Millisecond
	}
	p.hasRetry = true
	p.reconnect = p.retry + 1 // 0 stands for "never set"
}
