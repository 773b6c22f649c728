package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/service/stream"
)

var (
	// The expressions match JSON paths of the state of a response, of content, and of metadata, which is not content.
	nameOfState    = regexp.MustCompile(`(?i)type|event|stat|reason|kind|done|final|finish|last|complete`)
	nameOfContent  = regexp.MustCompile(`(?i)(content|text|delta|token|answer|chunk|response|output|message|value|piece)[^.]*$`)
	nameOfMetadata = regexp.MustCompile(`(?i)(id|type|time|date|created|role|model|object|sum|hash|fingerprint|obfuscation|signature|status|kind)['\]]*$`)
)

type finiteResponses struct {
	responses []series // blocks of each response without heartbeats, the terminal event last
	heartbeat object   // condition of a heartbeat, or nil
	done      object   // matches the terminal event and no other block
}

// awaitEnds waits until the service has ended all streams, and reports whether each ended with a terminal event. If
// requests have a prompt, it waits at most until the end of the probe. If the method is not GET or a stream has ended,
// it waits at most until half of Length has passed. Otherwise, and always if the probe publishes, it returns false at
// once.
func (s *session) awaitEnds(ctx context.Context) bool {
	if s.service.Publish != nil {
		return false
	}
	deadline := s.started.Add(s.Length / 2)
	switch {
	case s.requests.uses("{prompt}"):
		deadline = s.started.Add(s.Length)
	case s.service.Connect.Method == http.MethodGet && !slices.ContainsFunc(s.tracks, (*track).endedByService):
		return false
	}
	open := func(t *track) bool { return t.role == plain && t.open != nil && !t.endedByService() }
	for time.Now().Before(deadline) && ctx.Err() == nil && slices.ContainsFunc(s.tracks, open) {
		s.sleep(ctx, s.Pace/10)
	}
	return findFiniteResponses(s.tracks, s.disconnected) != nil
}

// findFiniteResponses returns the responses, or nil if the service did not end each with a terminal event after at
// least one other block. disconnected is the stream that the probe closed.
func findFiniteResponses(tracks []*track, disconnected *track) *finiteResponses {
	f := &finiteResponses{}
	for _, t := range tracks {
		switch {
		case t.role != plain || t.open == nil || t == disconnected && !t.endedByService():
			continue
		case !t.endedByService() || !errors.Is(t.ended, io.EOF):
			return nil
		}
		blocks := f.blocks(t)
		if len(blocks.units) < 2 {
			return nil
		}
		f.responses = append(f.responses, blocks)
	}
	if len(f.responses) == 0 {
		return nil
	}
	if f.done = f.findDone(); f.done == nil {
		return nil
	}
	return f
}

// noTerminalEvent returns the error for requests with a prompt if findFiniteResponses returned nil.
func (s *session) noTerminalEvent() error {
	const rule = "{prompt} requires responses that end with a terminal event, but "
	for _, t := range s.tracks {
		switch {
		case t.role != plain || t.open == nil || t == s.disconnected && !t.endedByService():
		case !t.endedByService():
			return fmt.Errorf(rule+"at least one response did not end within %s; probe for longer (--seconds)", formatSeconds(time.Since(s.started)))
		case !errors.Is(t.ended, io.EOF):
			return fmt.Errorf(rule+"at least one response failed: %s; probe again", stream.EndInWords(t.ended))
		}
	}
	return errors.New(rule + "no event follows the content, ends every response and occurs nowhere else; write the description manually (docs/finite.md)")
}

// blocks returns the blocks of a response that have data, without heartbeats. It stores the heartbeat in f. In OpenAI's
// Responses API, a [DONE] after the terminal event counts as a heartbeat.
func (f *finiteResponses) blocks(t *track) series {
	out := series{track: t}
	for _, u := range t.units() {
		switch {
		case len(u.Event) <= maxQuoted && heartbeatName.Match(u.Event):
			f.heartbeat = eventIs(string(u.Event))
		case string(u.Data) == "[DONE]" && len(out.units) > 0 && endOfResponsesAPI.MatchString(out.units[len(out.units)-1].EventName()):
			f.heartbeat = object{{name: "data", value: "[DONE]"}}
		case u.HasData:
			out.units = append(out.units, u)
		}
	}
	return out
}

var endOfResponsesAPI = regexp.MustCompile(`^response\.(completed|incomplete)$`)

func (f *finiteResponses) last() *unit {
	blocks := f.responses[0].units
	return blocks[len(blocks)-1]
}

// findDone returns a condition that only the last block of each response meets, or nil. The condition is the name of
// the event, a value in its JSON, or its data.
func (f *finiteResponses) findDone() object {
	// Some or all responses may end with response.incomplete.
	if key := eventIs("response.completed"); f.endsAll(apis[literal(key)].done) {
		return key
	}
	last := f.last()
	var options, unlikely []object
	if len(last.Event) > 0 && len(last.Event) <= maxQuoted {
		options = append(options, object{{name: "event", value: string(last.Event)}})
	}
	walk(jsonOf(last.Data), "$", 0, func(path string, value any) {
		text := fmt.Sprint(value)
		if _, isNumber := value.(json.Number); isNumber || len(text) > maxQuoted {
			return
		}
		option := object{{name: "json", value: path}, {name: "is", value: text}}
		if nameOfState.MatchString(path) {
			options = append(options, option)
		} else {
			unlikely = append(unlikely, option)
		}
	})
	options = append(options, unlikely...)
	if len(last.Data) <= maxQuoted {
		options = append(options, object{{name: "data", value: string(last.Data)}})
	}
	for _, option := range options {
		if f.endsAll(option) {
			return option
		}
	}
	return nil
}

func (f *finiteResponses) endsAll(done any) bool {
	s := compile(anyURL, "unchecked", field{name: "end", value: object{{name: "by", value: "event"}, {name: "done", value: done}}})
	if s == nil {
		return false
	}
	for _, response := range f.responses {
		for i, u := range response.units {
			if s.ReadChunk(&u.Block).Done != (i == len(response.units)-1) {
				return false
			}
		}
	}
	return true
}

// chunks returns the blocks of each response with the given event name, without the terminal event. If event is "",
// chunks returns the blocks with any name.
func (f *finiteResponses) chunks(event string) []series {
	var out []series
	for _, response := range f.responses {
		out = append(out, series{response.track, response.units[:len(response.units)-1]})
	}
	if event != "" {
		return named(out, event)
	}
	return out
}

// findSeq returns the place of the numbers of blocks, or "". first is the first number of the longest response.
func findSeq(all []series) (place string, first int64) {
	longest := slices.MaxFunc(all, func(a, b series) int { return len(a.units) - len(b.units) })
	if len(longest.units) < minNumbers {
		return "", 0
	}
	for _, option := range sources(longest.units[0].Block) {
		if read := seqReader(option); read != nil && countsUp(all, read) {
			first, _ = read(&longest.units[0].Block)
			return option, first
		}
	}
	return "", 0
}

// minNumbers is the minimum number of blocks: with fewer, numbers may count up by chance.
const minNumbers = 3

// countsUp reports whether the numbers of each response begin at 0 or 1 and count up.
func countsUp(all []series, read reader) bool {
	for _, response := range all {
		for i, u := range response.units {
			first, _ := read(&response.units[0].Block)
			v, ok := read(&u.Block)
			if !ok || first > 1 || v != first+int64(i) {
				return false
			}
		}
	}
	return true
}

// findContent returns the place with the largest number of distinct texts, or "". Equal texts of different responses
// count as distinct. A text counts four times if the name of its place is typical of content.
func (f *finiteResponses) findContent() string {
	different := map[string]map[string]bool{}
	var places []string
	for i, response := range f.responses {
		for _, u := range response.units[:len(response.units)-1] {
			walk(jsonOf(u.Data), "json:$", 0, func(path string, value any) {
				text, isText := value.(string)
				if !isText || text == "" || nameOfMetadata.MatchString(path) {
					return
				}
				if different[path] == nil {
					different[path] = map[string]bool{}
					places = append(places, path)
				}
				different[path][fmt.Sprint(i, text)] = true
			})
		}
	}
	best, most := "", 0
	for _, path := range places {
		score := len(different[path])
		if nameOfContent.MatchString(path) {
			score *= 4
		}
		if score > most {
			best, most = path, score
		}
	}
	return best
}

func (f *finiteResponses) names() (out []string) {
	count := map[string]int{}
	for _, u := range units(f.chunks("")) {
		if name := u.EventName(); len(name) <= maxQuoted {
			if count[name]++; count[name] == 1 {
				out = append(out, name)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b string) int { return count[b] - count[a] })
	return out
}

// message describes the chunks. It prefers numbers of all blocks, including the terminal event, because numbers of the
// chunks alone do not reveal the loss of the last chunk.
func (f *finiteResponses) message() (o object, missing []string) {
	seq, first := findSeq(f.responses)
	if seq == "" {
		names := f.names()
		for _, name := range names {
			if seq, first = findSeq(f.chunks(name)); seq != "" || len(names) == 1 {
				if name != "message" {
					o.add("event", name, "The name of the events with the content.")
				}
				break
			}
		}
	}
	if seq != "" {
		o.add("seq", seq, fmt.Sprintf("It counts up from %d in each response.", first))
	} else {
		missing = append(missing, "message.seq: in the events, the probe found no value that counts up from 0 or 1 in each response, so losses inside a complete response cannot be detected.")
	}
	if content := f.findContent(); content != "" {
		o.add("content", content, "This text changed most within a response. A block without it is not content.")
	}
	o.add("per", "request")
	return o, missing
}

// bursts returns sentences about the number of chunks that arrived together, and about a possible cause.
func (f *finiteResponses) bursts() string {
	together, chunks, atOnce := 0, 0, 0
	for _, response := range f.chunks("") {
		batches := 0
		for i, u := range response.units {
			if i == 0 || u.at.Sub(response.units[i-1].at) >= ledger.TogetherLimit {
				batches++
			}
		}
		chunks, together = chunks+len(response.units), together+len(response.units)-batches
		if batches == 1 && len(response.units) > 1 {
			atOnce++
		}
	}
	note := fmt.Sprintf("%d of %s arrived together with the previous one.", together, format.Count(chunks, "chunk"))
	if atOnce > 0 {
		note = fmt.Sprintf("%s In %s all chunks arrived together.", note, format.Count(atOnce, "response"))
	}
	if 2*together > chunks {
		note += " A proxy, such as nginx with proxy_buffering on, may buffer chunks."
	}
	return note
}

// end describes the end of a response. For a known API it adds the other conditions of the API's module, and returns
// the name of the module.
func (f *finiteResponses) end() (o object, module string) {
	o.add("by", "event")
	note := fmt.Sprintf("This event ended %s: %s", format.Count(len(f.responses), "response"), f.last().example())
	api, isKnown := apis[literal(f.done)]
	if !isKnown {
		o.add("done", f.done, note, "If a response may also end with another event, write a list: without that event in it, the response counts as truncated.",
			"No response contained an error. If the service can report one, add its event, such as", "failed: { event: 'error' },")
		return o, ""
	}
	if api.done == nil {
		api.done = f.done
	}
	o.add("done", api.done, note)
	o.add("failed", api.failed, "From the module "+api.module+".")
	if api.incomplete != nil {
		o.add("incomplete", api.incomplete)
	}
	return o, api.module
}

// description returns the description of the service, and sentences about fields that were not found. notes are the
// evidence for connect.
func (f *finiteResponses) description(s *session, notes []string) (o object, missing []string) {
	o = s.requests.start(s.requests.connectWithSecond(s.firstEvent, s.clientSource), notes)
	if f.heartbeat != nil {
		o.add("heartbeat", f.heartbeat)
	}
	message, missing := f.message()
	o.add("message", message, f.bursts())
	end, module := f.end()
	o.add("end", end)
	if module != "" {
		s.notes = append(s.notes, fmt.Sprintf("The terminal event matches `--service %s`, a module that describes this API and its request.", module))
	}
	if !s.requests.uses("{prompt}") {
		missing = append(missing, "connect: all requests are identical; put {prompt} into --body or the URL. Each request then has a different text, or a line of --prompts.")
	}
	return o, missing
}

// An api contains the end conditions of a module in load-tests/services.
type api struct {
	module                   string
	done, failed, incomplete any // nil: for done, the observed terminal event; for the others, no condition
}

func eventIs(name string) object { return object{{name: "event", value: name}} }

func valueIs(path, value string) object {
	return object{{name: "json", value: path}, {name: "is", value: value}}
}

func valueAt(path string) object { return object{{name: "json", value: path}} }

// apis maps the JavaScript literal of a terminal event to the API.
var apis = map[string]api{
	literal(object{{name: "data", value: "[DONE]"}}): {
		module: "openai-chat",
		failed: []any{valueAt("$.error"), eventIs("error")},
		incomplete: []any{
			valueIs("$.choices[0].finish_reason", "length"), valueIs("$.choices[0].finish_reason", "content_filter"),
			valueIs("$.choices[0].finish_reason", "abort"),
		},
	},
	literal(eventIs("response.completed")): {
		module: "openai-responses",
		done:   []any{eventIs("response.completed"), eventIs("response.incomplete")},
		failed: []any{
			eventIs("response.failed"), valueIs("$.response.status", "failed"),
			eventIs("response.cancelled"), valueIs("$.response.status", "cancelled"), eventIs("error"),
		},
		incomplete: []any{eventIs("response.incomplete"), valueIs("$.response.status", "incomplete")},
	},
	literal(eventIs("message_stop")): {
		module:     "anthropic-messages",
		failed:     eventIs("error"),
		incomplete: []any{valueIs("$.delta.stop_reason", "max_tokens"), valueIs("$.delta.stop_reason", "refusal")},
	},
	literal(valueIs("$.type", "RUN_FINISHED")): {module: "ag-ui", failed: valueIs("$.type", "RUN_ERROR")},
	literal(eventIs("complete")):               {module: "graphql-sse", failed: valueAt("$.errors")},
}
