package proxy

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
)

const (
	maxBody   = 1 << 10 // bytes of a refusal
	maxReason = 300
)

// Sentence returns the reason in the body of a refusal as one line: the detail or title of a problem (RFC 9457), or
// the first line of a text. It is "" without a reason.
func Sentence(body io.Reader) string {
	line, _ := sentence(body)
	return line
}

func sentence(body io.Reader) (line, complete string) {
	text, _ := io.ReadAll(io.LimitReader(body, maxBody))
	var problem struct{ Detail, Title string }
	if json.Unmarshal(text, &problem) == nil {
		if detail := cmp.Or(problem.Detail, problem.Title); detail != "" {
			text = []byte(detail)
		}
	}
	complete = strings.TrimSpace(strings.ToValidUTF8(string(text), "�"))
	line, _, _ = strings.Cut(complete, "\n")
	if strings.HasPrefix(line, "<") {
		return "", complete
	}
	if len(line) > maxReason {
		line = strings.ToValidUTF8(line[:maxReason], "") + "…"
	}
	return strings.TrimSpace(line), complete
}

// ErrorHeader returns the reason of a proxy in a header field: Proxy-Status (RFC 9209), or Squid's. It is "" without
// one, for example in a response of the service.
func ErrorHeader(header http.Header) string {
	return strings.TrimSpace(cmp.Or(header.Get("Proxy-Status"), header.Get("X-Squid-Error")))
}

var title = regexp.MustCompile(`(?is)<title[^>]*>\s*([^<]{1,200}?)\s*</title`)

// pageOf returns the title of an HTML page if it is more specific than the status, as with Squid and tinyproxy, or else
// Sentence.
func pageOf(body io.Reader, status string) string {
	line, complete := sentence(body)
	if match := title.FindStringSubmatch(complete); line == "" && match != nil {
		if line = strings.Join(strings.Fields(match[1]), " "); strings.EqualFold(line, status) {
			return ""
		}
	}
	return line
}
