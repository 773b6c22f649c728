package model

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Limits of an order.
const (
	MaxChunks = 1_000_000
	MaxSize   = 4096      // bytes
	MaxWait   = time.Hour // of each delay
	maxID     = 128       // bytes
)

// An Order has the settings of the answer to one request.
type Order struct {
	ID        string        // marker of the request; part of each chunk's checksum
	Chunks    int           // number of chunks
	Size      int           // bytes up to which the text of a chunk is padded with whole words
	Delay     time.Duration // time between two chunks
	TTFT      time.Duration // time before the first chunk
	Fault     Fault
	setsFault bool // whether the request sets Fault, even to none
}

// applyText returns the order, changed by the settings in text: the words KEY=VALUE in lines that start with "soak ".
func (o Order) applyText(text string) (Order, error) {
	for line := range strings.Lines(text) {
		words, found := strings.CutPrefix(strings.TrimSpace(line), "soak ")
		if !found {
			continue
		}
		for word := range strings.FieldsSeq(words) {
			key, value, _ := strings.Cut(word, "=")
			if err := o.set(key, value); err != nil {
				return o, fmt.Errorf("read the order %q: %w", word, err)
			}
		}
	}
	return o, nil
}

// set sets one key of the order. It ignores unknown keys, which other programs may read.
func (o *Order) set(key, value string) (err error) {
	switch key {
	case "id":
		o.ID, err = value, checkID(value)
	case "chunks":
		o.Chunks, err = parseNumber(value, 1, MaxChunks)
	case "size":
		o.Size, err = parseNumber(value, 0, MaxSize)
	case "delay":
		o.Delay, err = parseDelay(value)
	case "ttft":
		o.TTFT, err = parseDelay(value)
	case "fault":
		o.Fault, err = parseFault(value)
		o.setsFault = true
	}
	return err
}

// checkID returns an error if an id is empty, too long, not printable ASCII, or needs escapes in JSON.
func checkID(id string) error {
	if id == "" || len(id) > maxID || strings.ContainsFunc(id, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune(`"\<>&`, r)
	}) {
		return fmt.Errorf("id must have 1 to %d printable ASCII characters other than blanks and \"\\<>&", maxID)
	}
	return nil
}

func parseNumber(text string, minimum, maximum int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < minimum || n > maximum {
		return 0, fmt.Errorf("value must be a number from %d to %d", minimum, maximum)
	}
	return n, nil
}

func parseDelay(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > MaxWait {
		return 0, fmt.Errorf("value must be a duration from 0 to %v, such as 10ms", MaxWait)
	}
	return d, nil
}
