package eventstream

import (
	"bytes"
	"fmt"
	"strconv"
	"time"
)

// field processes a line that is not blank (section 9.2.6).
func (p *Parser) field(line []byte) error {
	p.hasLine = true
	name, value, colon := bytes.Cut(line, []byte{':'})
	if colon && len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	switch string(name) {
	case "data":
		p.hasEventField = true
		if len(p.data)+len(value) > int(p.limit) {
			return fmt.Errorf("%w of %d bytes (data)", ErrTooLong, p.limit)
		}
		p.data = p.join(p.data, p.hasData, value)
		p.hasData = true
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			p.nextID = append(p.nextID[:0], value...)
			p.hasID, p.hasEventField = true, true
		}
	case "event":
		p.name = append(p.name[:0], value...)
		p.hasEventField = true
	case "retry":
		p.setRetry(value)
	case "":
		if colon {
			p.addComment(value)
		}
	}
	return nil
}

// addComment adds a comment line to the block. If the comments exceed the limit, addComment drops the earlier comments.
func (p *Parser) addComment(value []byte) {
	if len(p.comment)+len(value) > int(p.limit) {
		p.comment, p.hasComment = p.comment[:0], false
	}
	p.comment = p.join(p.comment, p.hasComment, value)
	p.hasComment = true
}

func (p *Parser) join(buffer []byte, hasValue bool, value []byte) []byte {
	if hasValue {
		buffer = append(buffer, '\n')
	}
	return p.extend(buffer, value)
}

// maxRetry is the reconnection time for all larger values of a retry field, so that the time fits in a time.Duration.
const maxRetry = 100 * 365 * 24 * time.Hour

// setRetry sets the reconnection time in milliseconds. It ignores a value that does not consist of ASCII digits only.
func (p *Parser) setRetry(value []byte) {
	if len(value) == 0 || len(bytes.Trim(value, "0123456789")) > 0 {
		return
	}
	p.retry = maxRetry
	if ms, err := strconv.ParseInt(string(value), 10, 64); err == nil && ms < int64(maxRetry/time.Millisecond) {
		p.retry = time.Duration(ms) * time.Millisecond
	}
	p.hasRetry = true
	p.reconnect = p.retry + 1 // 0 stands for "never set"
}
