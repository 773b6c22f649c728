package main

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

type message struct {
	topic       *hubTopic
	index       int    // index among the messages of its topic
	run, t, sum string // marker, time in microseconds since 1970, and checksum; "": none
	number      int
	receivedAt  time.Time
	answeredAt  time.Time // zero: no response was sent
	status      int       // status of the response; 0: no response was sent
	delivered   bool      // queued for the open streams, even if a fault dropped it on some of them
}

// Corruptions of a message on its way to a client.
const (
	corruptNumber    = "number" // invalid number; with a checksum: the next number
	corruptShift     = "shift"  // another valid number
	corruptMarker    = "marker" // last character changed
	corruptTime      = "time"   // last digit changed
	corruptSum       = "sum"    // last digit changed
	corruptTruncated = "half"   // the data ends in the middle
)

// block returns a message as text on the wire. corruptShift adds offset to the number. parsed is the number that a
// client reads, or 0 if the client detects the corruption. belongs reports whether the client attributes the message to
// the run.
func (h *hubSpec) block(m *message, corruption string, offset int) (text string, parsed int, belongs bool) {
	run, seq, t, sum := m.run, strconv.Itoa(m.number), m.t, m.sum
	parsed, belongs = m.number, true
	switch corruption {
	case corruptNumber:
		parsed = 0
		seq = "x" + seq
		if h.HasChecksum {
			seq = strconv.Itoa(m.number + 1)
		}
	case corruptShift:
		seq, parsed = strconv.Itoa(m.number+offset), m.number+offset
		if h.HasChecksum {
			parsed = 0
		}
	case corruptMarker:
		run = run[:len(run)-1] + map[bool]string{true: "g", false: "h"}[run[len(run)-1] != 'g']
		if belongs = h.HasChecksum; belongs {
			parsed = 0
		}
	case corruptTime:
		t = t[:len(t)-1] + string('0'+('9'-t[len(t)-1]))
		parsed = 0
	case corruptSum:
		sum = sum[:7] + string('0'+(sum[7]-'0'+1)%10)
		parsed = 0
	}
	data := h.data(run, seq, t, sum, m)
	if corruption == corruptTruncated {
		data = data[:len(data)/2]
		parsed = 0
		belongs = !h.HasMarker || strings.Contains(data, m.run) || strings.Contains(data, m.run[:len(m.run)/2]) || strings.Contains(data, m.run[len(m.run)/2:])
	}
	return h.event(h.eventOf(m), h.idOf(m, seq), data), parsed, belongs
}

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

func (h *hubSpec) eventOf(m *message) string {
	if len(h.Events) == 0 {
		return []string{"", "message", "whatever"}[m.number%3]
	}
	name := h.Events[m.number%len(h.Events)]
	if name == "message" && m.number%2 == 0 {
		return ""
	}
	return name
}

func (h *hubSpec) idOf(m *message, seq string) string {
	switch h.IDs {
	case idsConstant:
		return "the-same"
	case idsUUID:
		return fmt.Sprintf("urn:uuid:%08x-0000-4000-8000-%012x", m.index*7919, m.index)
	case idsTime:
		return fmt.Sprintf("1763000000:%d", m.index)
	case idsNumber:
		return seq
	case idsPrefixed:
		return "m-" + seq
	}
	return ""
}

func (h *hubSpec) data(run, seq, t, sum string, m *message) string {
	if h.Form == formWords {
		return h.text(run, seq, t, sum)
	}
	isText := h.Form == formText || h.Form == formTags
	marker := `"` + run + `"`
	if h.EscapesMarker && run != "" {
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
	pad := `"` + h.pad(m) + `"`
	var members []string
	addIf := func(condition bool, member string) {
		if condition {
			members = append(members, member)
		}
	}
	switch h.Form {
	case formNested:
		addIf(true, `"items":[{"n":0,"items":[{},{"n":5}]},{"n":`+number+`},17]`)
		addIf(true, `"seq":[],"meta":{"run":null,"by whom":{"run":`+marker+`},"t":`+at+`}`)
		addIf(true, `"pad":`+pad)
		addIf(true, `"check":{"sum":`+check+`}`)
		addIf(true, fmt.Sprintf(`"id":"n%d"`, m.index))
	case formTags:
		addIf(true, `"message":`+pad)
		addIf(true, fmt.Sprintf(`"id":"n%d"`, m.index))
		addIf(true, `"tags":[`+marker+`,`+number+`,`+at+`,`+check+`]`)
	default:
		addIf(h.HasMarker, `"run":`+marker)
		addIf(m.index%2 == 0, `"pad":`+pad)
		addIf(h.Form != formID, `"seq":`+number)
		addIf(h.HasTime, `"t":`+at)
		addIf(true, `"other":{"seq":1,"run":"another","t":3,"sum":null,"seq ":[{"seq":4}]}`)
		addIf(h.HasChecksum, `"sum":`+check)
		addIf(m.index%2 != 0, `"pad":`+pad)
	}
	separator := ","
	if h.HasLineBreaks {
		separator = " ,\n\t"
	}
	return "{" + strings.Join(members, separator) + "}"
}

func (h *hubSpec) text(run, seq, t, sum string) string {
	if t != "" {
		t = h.formatTime(t)
	}
	text := "a message run=" + run + " seq=" + seq + " t=" + t + " sum=" + sum + " "
	return text + strings.Repeat("and words ", h.Pad/10)
}

// formatTime returns a time, given in microseconds, in the format of the hub, and shifted by Skew. If t is not a
// number, it returns an empty JSON string.
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

// pad returns additional text that resembles other fields of a message. It is the content of a JSON string.
func (h *hubSpec) pad(m *message) string {
	const unit = `\"seq\":17,{ö\n} \u00e9\\ \ud83d\ude00 data: id: \/`
	return strings.Repeat(unit, h.Pad/len(unit)) + strings.Repeat("x", m.number%3)
}

// sumOf returns the checksum that docs/services.md defines, as 8 hexadecimal digits.
func sumOf(run string, number int, t string) string {
	text := run + "\x00" + strconv.Itoa(number) + "\x00" + t
	return fmt.Sprintf("%08x", crc32.Checksum([]byte(text), crc32.MakeTable(crc32.Castagnoli)))
}

// describe writes the description of a hub to a file, as a JavaScript module.
func (h *hubSpec) describe(path string) error {
	text, err := json.MarshalIndent(h.description(), "", "  ")
	if err != nil {
		return err
	}
	module := "export default " + string(text) + ";\n"
	if h.Token != "" {
		module = "let first;\nexport default { ..." + string(text) + ", token: " + tokens[h.Token] + " };\n"
	}
	return os.WriteFile(path, []byte(module), 0o644)
}

type object = map[string]any

// description returns the description of the hub, without the token function.
func (h *hubSpec) description() object {
	connect := object{"url": h.url("s", map[string]string{"topic": "{topic}", "id": "{id}"})}
	if h.IDInHeader {
		connect["url"] = h.url("s", map[string]string{"topic": "{topic}"})
		connect["headers"] = object{"X-Stream": "{id}"}
	}
	if h.Token != "" {
		headers, _ := connect["headers"].(object)
		if headers == nil {
			headers = object{}
		}
		headers["Authorization"], connect["headers"] = "Bearer {token}", headers
	}
	if h.SecondRequest {
		connect["then"] = object{"event": "hello", "client": "json:$.you.id", "url": "{base}/join/{client}", "body": `{"topic":"{topic}"}`, "ok": []int{202}}
	}
	out := object{"name": "campaign", "connect": connect, "message": h.Message}
	if h.Message == nil {
		out["message"], out["publish"] = h.messages(), h.publishField()
	}
	if h.Token != "" {
		out["token"] = true // a placeholder for the function that describe adds
	}
	if h.Heartbeat != "" {
		heartbeat := maps.Clone(heartbeats[h.Heartbeat].description)
		if h.StatedInterval > 0 {
			heartbeat["every"] = h.StatedInterval
		}
		out["heartbeat"] = heartbeat
	}
	switch h.End {
	case "request":
		out["end"] = object{"by": "request", "method": "DELETE", "url": "{base}/end?id={id}"}
	case "server":
		out["end"] = object{"by": "server", "lifetime": []float64{h.Lifetime, h.Lifetime * 1.2}}
	}
	resume := object{"by": h.Resume}
	switch h.Resume {
	case "query":
		resume["by"] = object{"query": "since"}
	case "data":
		resume = object{"by": object{"query": "since"}, "id": "json:$.id"}
	}
	switch h.Gap {
	case "event":
		resume["gap"] = object{"event": "reset"}
	case "header":
		resume["gap"] = object{"header": "X-Gap: yes"}
	}
	out["resume"] = resume
	return out
}

func (h *hubSpec) url(path string, parameters map[string]string) string {
	url := "{base}/" + path
	var query []string
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		if value := parameters[name]; name == "topic" && h.TopicInPath {
			url += "/" + value
		} else {
			query = append(query, name+"="+value)
		}
	}
	if len(query) > 0 {
		url += "?" + strings.Join(query, "&")
	}
	return url
}

func (h *hubSpec) messages() object {
	out := object{"seq": h.source("seq")}
	if h.HasMarker {
		out["run"] = h.source("run")
	}
	if h.HasTime {
		out["sentAt"] = h.source("t")
	}
	if h.HasChecksum {
		out["sum"] = h.source("sum")
	}
	switch len(h.Events) {
	case 0:
	case 1:
		out["event"] = h.Events[0]
	default:
		out["event"] = h.Events
	}
	if h.Order != "" {
		out["order"] = h.Order
	}
	if h.Delivery != "" {
		out["delivery"] = h.Delivery
	}
	return out
}

func (h *hubSpec) source(name string) string {
	switch {
	case h.Form == formID && name == "seq" && h.IDs == idsNumber:
		return "id"
	case h.Form == formID && name == "seq":
		return "id:^[a-z]+-([0-9]+)$"
	case h.Form == formWords && name == "seq":
		return "data:seq=([0-9]+) "
	case h.Form == formWords:
		return "data: " + name + "=([^ ]+) "
	case h.Form == formTags:
		return map[string]string{"run": "json:$.tags[0]", "seq": "json:$.tags[1]", "t": "json:$.tags[2]", "sum": "json:$.tags[3]"}[name]
	case h.Form == formNested:
		return map[string]string{"run": "json:$.meta['by whom'].run", "seq": "json:$.items[1].n", "t": "json:$.meta.t", "sum": "json:$['check'].sum"}[name]
	}
	return "json:$." + name
}

func (h *hubSpec) publishField() object {
	values := map[string]string{"seq": "{seq}"}
	if h.HasMarker {
		values["run"] = "{run}"
	}
	if h.HasTime && h.Skew == 0 {
		values["t"] = "{sentAt}"
	}
	if h.HasChecksum {
		values["sum"] = "{sum}"
	}
	topic := map[string]string{"topic": "{topic}"}
	out := object{"method": h.Method, "ok": []int{h.Status, 207}}
	var parts []string
	headers := object{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch h.MessageIn {
		case "json":
			value := values[name]
			if name == "run" || name == "sum" {
				value = `"` + value + `"`
			}
			parts = append(parts, `"`+name+`":`+value)
		case "form":
			parts = append(parts, name+"="+values[name])
		case "headers":
			headers["X-Soak-"+name] = values[name]
		case "query":
			topic[name] = values[name]
		}
	}
	switch h.MessageIn {
	case "json":
		out["body"] = "{" + strings.Join(parts, ",") + "}"
	case "form":
		out["body"] = strings.Join(parts, "&")
		headers["Content-Type"] = "application/x-www-form-urlencoded"
	case "headers":
		out["body"] = "soak"
	}
	if len(headers) > 0 {
		out["headers"] = headers
	}
	out["url"] = h.url("p", topic)
	return out
}
