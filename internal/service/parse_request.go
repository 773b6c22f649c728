package service

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

type requestRules struct {
	method      string  // default method
	fields      []Field // allowed placeholders
	noURL       bool    // a function returns the URL
	noBody      bool    // a function returns the body
	byPublisher bool    // {token} is PUBLISH_TOKEN
}

var (
	methodName = regexp.MustCompile(`^[A-Z]+$`)
	headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
)

func (p *parser) request(f *fields, r *Request, rules requestRules) {
	r.Method = rules.method
	if method, ok := p.text(f.valueNode("method"), f.qualifiedName("method")); ok {
		if r.Method = method; !methodName.MatchString(method) {
			p.mistakes.add(f.position("method"), "%s must be a method in capitals, such as 'POST', got %q", f.qualifiedName("method"), method)
		}
	}
	p.url(f, r, rules)
	p.headers(f, r, rules)
	p.body(f, r, rules)
	p.statuses(f, r)
}

func (p *parser) url(f *fields, r *Request, rules requestRules) {
	name := f.qualifiedName("url")
	switch url := f.valueNode("url"); {
	case rules.noURL && url != nil:
		p.mistakes.add(url.at, "%s cannot be combined with the function url(n); remove one of them", name)
	case rules.noURL:
	case url == nil:
		f.need(p, "url", "the URL of the request, such as '{base}/events'")
	default:
		text, ok := p.text(url, name)
		if ok && !strings.HasPrefix(text, "{base}") && !strings.HasPrefix(text, "http://") && !strings.HasPrefix(text, "https://") {
			p.mistakes.add(url.at, "%s must begin with {base}, which is BACKEND_URL, or with http:// or https://, got %q", name, text)
		}
		r.URL = p.template(url, name, text, languageURL, rules)
	}
}

func (p *parser) headers(f *fields, r *Request, rules requestRules) {
	n := f.valueNode("headers")
	if n == nil {
		return
	}
	if n.kind != kindObject {
		p.mistakes.add(n.at, "%s must be an object of names and values, got %s", f.qualifiedName("headers"), n.kind)
		return
	}
	names := map[string]bool{}
	for _, m := range n.members {
		name := f.qualifiedName("headers") + "." + m.name
		lower := strings.ToLower(m.name)
		switch {
		case !headerName.MatchString(m.name):
			p.mistakes.add(m.at, "%s is not the name of a header", name)
		case names[lower]:
			p.mistakes.add(m.at, "%s is defined twice; remove one of the definitions", name)
		case slices.Contains([]string{"host", "content-length", "transfer-encoding", "connection"}, lower):
			p.mistakes.add(m.at, "%s is set by the client; remove it", name)
		case lower == "last-event-id":
			p.mistakes.add(m.at, "%s is set by resume; remove it", name)
		}
		names[lower] = true
		if text, ok := p.text(m.node, name); ok {
			r.Headers = append(r.Headers, Header{m.name, p.template(m.node, name, text, languageHeader, rules)})
		}
	}
}

// body parses the body in the language of the Content-Type. If the request has no Content-Type and the body begins like
// an object or a list, the body is JSON. The request then gets the Content-Type application/json.
func (p *parser) body(f *fields, r *Request, rules requestRules) {
	n := f.valueNode("body")
	if n == nil {
		return
	}
	name := f.qualifiedName("body")
	if rules.noBody {
		p.mistakes.add(n.at, "%s cannot be combined with the function body(n); remove one of them", name)
	}
	if n.kind == kindObject || n.kind == kindList {
		p.mistakes.add(n.at, `%s must be text; write the JSON as a string, such as '{"run":"{run}","seq":{seq}}'`, name)
		return
	}
	text, ok := p.text(n, name)
	if !ok {
		return
	}
	if r.Method == "GET" || r.Method == "HEAD" {
		p.mistakes.add(n.at, "%s cannot be sent with %s; set %s, such as 'POST'", name, r.Method, f.qualifiedName("method"))
	}
	l := languageText
	at := slices.IndexFunc(r.Headers, func(h Header) bool { return strings.EqualFold(h.Name, "Content-Type") })
	if at >= 0 {
		switch kind := strings.ToLower(string(r.Headers[at].Value.Append(nil, &Values{}))); {
		case strings.Contains(kind, "json"):
			l = languageJSON
		case strings.HasPrefix(kind, "application/x-www-form-urlencoded"):
			l = languageForm
		}
	} else if isJSON(strings.TrimSpace(text)) {
		l = languageJSON
		r.Headers = append(r.Headers, Header{"Content-Type", Template{[]part{{literal: "application/json"}}}})
	}
	r.Body = p.template(n, name, text, l, rules)
}

func (p *parser) statuses(f *fields, r *Request) {
	n := f.valueNode("ok")
	if n == nil {
		r.OK = []int{200, 201, 202, 204}
		return
	}
	if n.kind != kindList || len(n.items) == 0 {
		p.mistakes.add(n.at, "%s must be a list of statuses that confirm the request, such as [200, 201]", f.qualifiedName("ok"))
		return
	}
	for _, item := range n.items {
		number, isNumber := item.value.(json.Number)
		status, err := number.Int64()
		if err != nil || status < 200 || status > 399 {
			got := string(item.kind)
			if isNumber {
				got = number.String()
			}
			p.mistakes.add(item.at, "%s must contain only statuses from 200 to 399, got %s", f.qualifiedName("ok"), got)
			continue
		}
		r.OK = append(r.OK, int(status))
	}
}

// template compiles the text of a field. {token} is a mistake if the description has no token, except in publish, where
// {token} is PUBLISH_TOKEN.
func (p *parser) template(n *node, name, text string, l language, rules requestRules) Template {
	t := compileTemplate(text, l, rules.fields, func(format string, args ...any) {
		p.mistakes.add(n.at, "%s: "+format, append([]any{name}, args...)...)
	})
	if t.Uses(Token) && !rules.byPublisher && !p.service.HasToken && p.service.TokenVariable == "" {
		p.mistakes.add(n.at, "%s: {token} has no value; set token, such as token: 'SUBSCRIBE_TOKEN'", name)
	}
	return t
}
