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
	maxBody   = 1 << 10 // bytes of a refusal that are read
	maxReason = 300     // bytes of a reason
)

// Sentence returns the reason in the body of a refusal as one line. The reason is the detail or title of a problem (RFC
// 9457), or the first line of a text. It is "" for a page in HTML.
func Sentence(body io.Reader) string {
	line, _ := sentence(body)
	return line
}

// sentence returns the line of Sentence, and the text from which it is taken.
func sentence(body io.Reader) (line, text string) {
	content, _ := io.ReadAll(io.LimitReader(body, maxBody))
	var problem struct{ Detail, Title string }
	if json.Unmarshal(content, &problem) == nil {
		if detail := cmp.Or(problem.Detail, problem.Title); detail != "" {
			content = []byte(detail)
		}
	}
	text = strings.TrimSpace(strings.ToValidUTF8(string(content), "�"))
	line, _, _ = strings.Cut(text, "\n")
	if strings.HasPrefix(line, "<") {
		return "", text
	}
	if len(line) > maxReason {
		line = strings.ToValidUTF8(line[:maxReason], "") + "…"
	}
	return strings.TrimSpace(line), text
}

// ErrorHeader returns the reason of a proxy in the header field Proxy-Status (RFC 9209) or X-Squid-Error. It returns ""
// without these fields, for example for a response of the service.
func ErrorHeader(header http.Header) string {
	return strings.TrimSpace(cmp.Or(header.Get("Proxy-Status"), header.Get("X-Squid-Error")))
}

var title = regexp.MustCompile(`(?is)<title[^>]*>\s*([^<]{1,200}?)\s*</title`)

// reasonOf returns the reason in the body of a refusal. For an HTML page, such as those of Squid and tinyproxy, it is
// the title, unless that repeats the status.
func reasonOf(body io.Reader, status string) string {
	line, text := sentence(body)
	if match := title.FindStringSubmatch(text); line == "" && match != nil {
		if line = strings.Join(strings.Fields(match[1]), " "); strings.EqualFold(line, status) {
			return ""
		}
	}
	return line
}
