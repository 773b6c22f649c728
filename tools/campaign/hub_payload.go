package main

import (
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"time"
)

// A message is one message as its publisher sent it.
type message struct {
	topic       *hubTopic
	index       int // index among the messages of its topic
	run, t, sum string
	number      int
	got         time.Time
	answered    time.Time // zero: no response was sent
	status      int
	delivered   bool // to the streams that were open then, even if a fault kept it from some
}

// Corruptions of a message on its way to a client.
const (
	corruptNumber    = "number" // invalid number; with a checksum: the next number
	corruptShift     = "shift"  // another valid number
	corruptMarker    = "marker"
	corruptTime      = "time" // another time
	corruptSum       = "sum"
	corruptTruncated = "half" // the data ends in the middle
)

// block returns a message as text on the wire, with a corruption. reads is the number that the description finds in it,
// or 0 if the message is corrupted. valid reports whether it still belongs to the run.
func (h *hubSpec) block(l *message, corruption string, by int) (text string, reads int, valid bool) {
	run, seq, t, sum := l.run, strconv.Itoa(l.number), l.t, l.sum
	reads, valid = l.number, true
	broken := func(noticed bool) {
		if noticed {
			reads = 0
		}
	}
	switch corruption {
	case corruptNumber:
		broken(true)
		seq = "x" + seq
		if h.Summed {
			seq = strconv.Itoa(l.number + 1)
		}
	case corruptShift:
		seq, reads = strconv.Itoa(l.number+by), l.number+by
		broken(h.Summed)
	case corruptMarker:
		run = run[:len(run)-1] + map[bool]string{true: "g", false: "h"}[run[len(run)-1] != 'g']
		broken(h.Summed)
		valid = h.Summed
	case corruptTime:
		t = t[:len(t)-1] + string('0'+('9'-t[len(t)-1]))
		broken(true)
	case corruptSum:
		sum = sum[:7] + string('0'+(sum[7]-'0'+1)%10)
		broken(true)
	}
	data := h.data(run, seq, t, sum, l)
	if corruption == corruptTruncated {
		data = data[:len(data)/2]
		broken(true)
		valid = !h.Marked || strings.Contains(data, l.run) || strings.Contains(data, l.run[:len(l.run)/2]) || strings.Contains(data, l.run[len(l.run)/2:])
	}
	return h.event(h.eventOf(l), h.idOf(l, seq), data), reads, valid
}

// event returns a block of these fields, with lines that end with LF.
func (h *hubSpec) event(name, id, data string) string {
	text := ""
	if name != "" {
		text = "event: " + name + "\n"
	}
	if id != "" {
		text += "id: " + id + "\n"
	}
	return text + "data: " + strings.ReplaceAll(data, "\n", "\ndata: ") + "\n\n"
}

// eventOf returns the event name of a message.
func (h *hubSpec) eventOf(l *message) string {
	if len(h.Events) == 0 {
		return []string{"", "message", "whatever"}[l.number%3]
	}
	name := h.Events[l.number%len(h.Events)]
	if name == "message" && l.number%2 == 0 {
		return ""
	}
	return name
}

func (h *hubSpec) idOf(l *message, seq string) string {
	switch h.IDs {
	case hubConstant:
		return "the-same"
	case hubUUID:
		return fmt.Sprintf("urn:uuid:%08x-0000-4000-8000-%012x", l.index*7919, l.index)
	case hubTime:
		return fmt.Sprintf("1763000000:%d", l.index)
	case hubNumber:
		return seq
	case hubPrefixed:
		return "m-" + seq
	}
	return ""
}

// data returns the data of a message with these values.
func (h *hubSpec) data(run, seq, t, sum string, l *message) string {
	if h.Form == formWords {
		return h.text(run, seq, t, sum)
	}
	isText := h.Form == formText || h.Form == formTags
	marker := `"` + run + `"`
	if h.Escaped && run != "" {
		marker = fmt.Sprintf(`"%s\u%04x"`, run[:len(run)-1], run[len(run)-1])
	}
	number := seq
	if isText || seq[0] == 'x' {
		number = `"` + seq + `"`
	}
	at := h.formatTime(t)
	if isText && !strings.HasPrefix(at, `"`) {
		at = `"` + at + `"`
	}
	check := `"` + sum + `"`
	pad := `"` + h.pad(l) + `"`
	var members []string
	add := func(wanted bool, member string) {
		if wanted {
			members = append(members, member)
		}
	}
	switch h.Form {
	case formNested:
		add(true, `"items":[{"n":0,"items":[{},{"n":5}]},{"n":`+number+`},17]`)
		add(true, `"seq":[],"meta":{"run":null,"by whom":{"run":`+marker+`},"t":`+at+`}`)
		add(true, `"pad":`+pad)
		add(true, `"check":{"sum":`+check+`}`)
		add(true, fmt.Sprintf(`"id":"n%d"`, l.index))
	case formTags:
		add(true, `"message":`+pad)
		add(true, fmt.Sprintf(`"id":"n%d"`, l.index))
		add(true, `"tags":[`+marker+`,`+number+`,`+at+`,`+check+`]`)
	default:
		add(h.Marked, `"run":`+marker)
		add(l.index%2 == 0, `"pad":`+pad)
		add(h.Form != formID, `"seq":`+number)
		add(h.Timed, `"t":`+at)
		add(true, `"other":{"seq":1,"run":"another","t":3,"sum":null,"seq ":[{"seq":4}]}`)
		add(h.Summed, `"sum":`+check)
		add(l.index%2 != 0, `"pad":`+pad)
	}
	between := ","
	if h.Lined {
		between = " ,\n\t"
	}
	return "{" + strings.Join(members, between) + "}"
}

func (h *hubSpec) text(run, seq, t, sum string) string {
	if t != "" {
		t = h.formatTime(t)
	}
	text := "a message run=" + run + " seq=" + seq + " t=" + t + " sum=" + sum + " "
	return text + strings.Repeat("and words ", h.Pad/10)
}

// formatTime returns a time, given in microseconds, in the format of the hub.
func (h *hubSpec) formatTime(t string) string {
	us, err := strconv.ParseInt(t, 10, 64)
	if err != nil {
		return `""`
	}
	us += h.Skew.Microseconds()
	switch h.Time {
	case "text":
		return `"` + strconv.FormatInt(us, 10) + `"`
	case "exponent":
		return strconv.FormatFloat(float64(us), 'e', -1, 64)
	case "date":
		return `"` + time.UnixMicro(us).UTC().Format("2006-01-02T15:04:05.000000Z07:00") + `"`
	case "seconds":
		return fmt.Sprintf("%d.%06d", us/1e6, us%1e6)
	case "millis":
		return strconv.FormatInt(us/1000, 10)
	}
	return strconv.FormatInt(us, 10)
}

// pad returns text that resembles other parts of a message.
func (h *hubSpec) pad(l *message) string {
	const one = `\"seq\":17,{ö\n} \u00e9\\ \ud83d\ude00 data: id: \/`
	n := h.Pad / len(one)
	return strings.Repeat(one, n) + strings.Repeat("x", l.number%3)
}

// sumOf returns the checksum that docs/services.md defines, as 8 digits.
func sumOf(run string, number int, t string) string {
	text := run + "\x00" + strconv.Itoa(number) + "\x00" + t
	return fmt.Sprintf("%08x", crc32.Checksum([]byte(text), crc32.MakeTable(crc32.Castagnoli)))
}
