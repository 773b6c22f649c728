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
	maxBody   = 1 << 10 // maximum bytes read from the body of a refusal
	maxReason = 300     // maximum bytes of a reason
)

// Sentence returns the reason in the body of a refusal as one line. The reason is the detail or title of problem
// details (RFC 9457), or the first line of other text. It is "" for an HTML page.
func Sentence(body io.Reader) string {
	line, _ := sentence(body)
	return line
}

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

// ErrorHeader returns the reason in the header Proxy-Status (RFC 9209) or X-Squid-Error of a proxy; "" for none.
func ErrorHeader(header http.Header) string {
	return strings.TrimSpace(cmp.Or(header.Get("Proxy-Status"), header.Get("X-Squid-Error")))
}

var title = regexp.MustCompile(`(?is)<title[^>]*>\s*([^<]{1,200}?)\s*</title`)

// reasonOf returns the reason in the body of a refusal. For an HTML page, which Squid and tinyproxy send, the reason is
// the title, or "" if the title only repeats the status.
func reasonOf(body io.Reader, status string) string {
	line, text := sentence(body)
	if match := title.FindStringSubmatch(text); line == "" && match != nil {
		if line = strings.Join(strings.Fields(match[1]), " "); strings.EqualFold(line, status) {
			return ""
		}
	}
	return line
}
