package service

import (
	"encoding/json"
	"strings"
)

// Said is what the description has in a field, such as message.seq, as JSON; "" where it is left out. It is for
// sentences about what does not fit, which quote it.
func (s *Service) Said(field string) string {
	at := json.RawMessage(s.source)
	for name := range strings.SplitSeq(field, ".") {
		var members map[string]json.RawMessage
		if json.Unmarshal(at, &members) != nil || members[name] == nil {
			return ""
		}
		at = members[name]
	}
	return string(at)
}
