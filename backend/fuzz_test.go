package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

func FuzzDeviceID(f *testing.F) {
	for _, seed := range []string{"id=a-1", "id=", "id=a&id=b", "id=%2e%2e%2f", "id=a;b", "id=a%00", "ID=a", "id=a+b", "&&&id=x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		id, err := parseDeviceID(raw)
		if err != nil {
			if id != "" {
				t.Fatalf("refused %q, but returned the id %q", raw, id)
			}
			return
		}
		if len(id) == 0 || len(id) > 64 || strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") != "" {
			t.Fatalf("accepted the invalid id %q", id)
		}
		if q, err := url.ParseQuery(raw); err != nil || len(q["id"]) != 1 || q["id"][0] != id {
			t.Fatalf("id %q is not the parameter of %q", id, raw)
		}
	})
}

// FuzzLastEventID checks that only an empty value and plain numbers within bounds are accepted.
func FuzzLastEventID(f *testing.F) {
	for _, seed := range []string{"", "0", "17", "-1", "+1", " 1", "1e3", "007", "9223372036854775807", "99999999999999999999", "1_0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		last, err := parseLastEventID([]string{value})
		digits := value != "" && strings.Trim(value, "0123456789") == ""
		switch {
		case err == nil && value == "" && !last.explicit:
		case err == nil && digits && last.explicit && last.number <= maxEventNumber:
		case err != nil && (!digits || len(strings.TrimLeft(value, "0")) >= 19):
		default:
			t.Fatalf("parseLastEventID(%q): got %+v and error %v, but only \"\" and numbers up to %d are valid", value, last, err, uint64(maxEventNumber))
		}
	})
}

// A client that implements the standard receives any data as one event, with LF as the line ending.
func FuzzEventBody(f *testing.F) {
	f.Add("a\r\nb\rc\n")
	f.Add("\n\nid: 3\nevent: x")
	f.Add("\x00\ufeff")
	f.Add("")
	f.Fuzz(func(t *testing.T, data string) {
		wire := string(newFrame(append(eventHead(7, 0), eventBody("n", []byte(data))...)).bytes(false))
		lines := strings.Split(strings.TrimSuffix(wire, "\n\n"), "\n")
		if !strings.HasSuffix(wire, "\n\n") || lines[0] != "id: 7" || lines[1] != "event: n" {
			t.Fatalf("the frame must have an id, a name and a blank line, got %q", wire)
		}
		var got []string
		for _, line := range lines[2:] {
			value, ok := strings.CutPrefix(line, "data: ")
			if !ok || strings.Contains(value, "\r") {
				t.Fatalf("each line must be a data line, got %q", line)
			}
			got = append(got, value)
		}
		want := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(data)
		if strings.Join(got, "\n") != want {
			t.Fatalf("the client receives %q as the lines %q", data, got)
		}
	})
}

// FuzzRoutes calls the routes with any method and path, without net/http's parser. No input may cause a panic. Without
// the token, only the paths in open may respond with success.
func FuzzRoutes(f *testing.F) {
	f.Add("GET", "/event/ledger")
	f.Add("get", "/event/../healthz")
	f.Add("GET", "/EVENT/ledger")
	svc := startTest(f, "--max-connections=10", "--backend-token=t")
	routes := svc.routes()
	open := map[string]bool{"/healthz": true, "/readyz": true, "/metrics": true}
	f.Fuzz(func(t *testing.T, method, path string) {
		r := &http.Request{Method: method, URL: &url.URL{Path: path}, Header: http.Header{}, Body: http.NoBody, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
		if path == "/event/connect" {
			return // needs a real connection
		}
		w := httptest.NewRecorder()
		routes.ServeHTTP(w, r)
		if w.Code < 300 && !open[path] {
			t.Fatalf("%s %q: got status %d without the token", method, path, w.Code)
		}
	})
}
