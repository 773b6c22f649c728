package services

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func request(t *testing.T, h *Handler, method, path, body string) (int, http.Header, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return w.Code, w.Header(), w.Body.String()
}

func TestOperations(t *testing.T) {
	t.Parallel()
	h := New("backend-1")
	for query, want := range map[string]string{
		"math.multiply?a=9&b=22":      `198`,
		"math.multiply?a=0.5&b=-3":    `-1.5`,
		"math.add?a=9&b=22":           `31`,
		"math.power?a=2&b=10":         `1024`,
		"string.upper?text=gr%C3%BCn": `"GRÜN"`,
		"echo?text=a%26b%20%3Cc%3E":   `"a\u0026b \u003cc\u003e"`,
		"array.sort?values=3,-1,2.5":  `[-1,2.5,3]`,
		"status":                      `"ok"`,
	} {
		status, header, body := request(t, h, "GET", "/default/services/calculator/"+query, "")
		require.Equal(t, 200, status, query)
		require.Equal(t, "application/json", header.Get("Content-Type"))
		require.Equal(t, "backend-1", header.Get("X-Server"))
		require.Equal(t, "1", header.Get("X-In-Flight"))
		name, _, _ := strings.Cut(query, "?")
		require.JSONEq(t, fmt.Sprintf(`{"service":"calculator","operation":%q,"result":%s}`, name, want), body)
	}
	require.EqualValues(t, 8, h.Received())
	require.Zero(t, h.InFlight())
}

func TestRefusalsHaveAReason(t *testing.T) {
	t.Parallel()
	h := New("")
	for _, c := range []struct {
		method, path string
		status       int
		wantText     string
	}{
		{"GET", "/default/services/s/math.multiply?a=9", 400, "b must be a finite number"},
		{"GET", "/default/services/s/math.multiply?a=NaN&b=1", 400, "a must be a finite number"},
		{"GET", "/default/services/s/math.power?a=10&b=400", 400, "not a finite number"},
		{"GET", "/default/services/s/math.add?a=%zz", 400, "the query cannot be parsed"},
		{"GET", "/default/services/s/echo", 400, "text is required"},
		{"GET", "/default/services/s/string.upper?text=" + strings.Repeat("x", maxText+1), 400, "at most 4096 bytes"},
		{"GET", "/default/services/s/array.sort?values=1,,2", 400, "numbers separated by commas"},
		{"GET", "/default/services/s/array.sort?values=" + strings.Repeat("1,", maxValues) + "1", 400, "at most 1000"},
		{"GET", "/default/services/s/math.divide?a=1&b=2", 404, "use one of account.register, array.sort, echo, math.add"},
		{"GET", "/default/services/a%2Fb/status", 404, "the name of a service"},
		{"GET", "/default/services//status", 404, "the name of a service"},
		{"POST", "/default/services/s/status", 405, "use GET"},
		{"GET", "/default/services/s/account.register", 405, "use POST"},
		{"GET", "/default/upload", 405, "use POST"},
		{"GET", "/default/nothing", 404, "unknown route"},
	} {
		status, header, body := request(t, h, c.method, c.path, "")
		require.Equal(t, c.status, status, c.path)
		require.Contains(t, body, c.wantText, c.path)
		require.Empty(t, header.Get("X-Server"))
	}
}

func TestRegistrationIsValidated(t *testing.T) {
	t.Parallel()
	h := New("backend-1")
	register := func(body string) (int, string) {
		status, header, response := request(t, h, "POST", "/default/services/calculator/account.register", body)
		require.Equal(t, "backend-1", header.Get("X-Server"))
		return status, response
	}
	for range 2 { // registrations are not stored, so the second one is not a conflict
		status, response := register(`{"id": "a1", "email": "Ada@Example.com", "name": " Ada Lovelace "}`)
		require.Equal(t, 200, status)
		require.JSONEq(t, `{"service":"calculator","operation":"account.register","result":{"id":"a1","email":"ada@example.com","name":"Ada Lovelace"}}`, response)
	}
	for body, text := range map[string]string{
		``:  "the body must be an object with id, email and name",
		`7`: "the body must be an object",
		`{"id":"a1","email":"a@example.com","name":"A","admin":true}`:                         "the body must be an object with id, email and name",
		`{"id":"a1","email":"a@example.com","name":"A"} {}`:                                   "without further text",
		`{"id":"a/1","email":"a@example.com","name":"A"}`:                                     "the id must have",
		`{"id":"a1","email":"Ada <a@example.com>","name":"A"}`:                                "the email must be an address",
		`{"id":"a1","email":"a@` + strings.Repeat("x", maxMail) + `.com","name":"A"}`:         "the email must be an address",
		`{"id":"a1","email":"a@example.com","name":"  "}`:                                     "the name is required",
		`{"id":"a1","email":"a@example.com","name":"` + strings.Repeat("x", maxName+1) + `"}`: "at most 200 bytes",
	} {
		status, response := register(body)
		require.Equal(t, 400, status, body)
		require.Contains(t, response, text, body)
	}
	status, response := register(`{"id":"` + strings.Repeat("x", maxRegistration) + `"}`)
	require.Equal(t, 413, status)
	require.Contains(t, response, "at most 4096 bytes")
}

func TestUploadIsHashed(t *testing.T) {
	t.Parallel()
	h := New("")
	for _, size := range []int{0, 1, 5 << 20} {
		data := strings.Repeat("ab", size/2+1)[:size]
		status, _, body := request(t, h, "POST", "/default/upload", data)
		require.Equal(t, 200, status)
		sum := sha256.Sum256([]byte(data))
		require.JSONEq(t, fmt.Sprintf(`{"bytes": %d, "sha256": "%x"}`, size, sum), body)
	}
}

func TestTruncatedUploadIsRejected(t *testing.T) {
	t.Parallel()
	h, w := New(""), httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("POST", "/default/upload", io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(io.ErrUnexpectedEOF))))
	require.Equal(t, 400, w.Code)
	require.Contains(t, w.Body.String(), "send the whole body")
}

func TestGenericEndpoints(t *testing.T) {
	t.Parallel()
	h := New("b")
	status, _, body := request(t, h, "GET", "/httpbin/get?x=1", "")
	require.Equal(t, 200, status)
	require.Contains(t, body, `"x"`)
	status, _, _ = request(t, h, "GET", "/httpbin/status/503", "")
	require.Equal(t, 503, status)
}

func TestInFlightIncludesUnfinishedUploads(t *testing.T) {
	t.Parallel()
	h := New("")
	r, w := io.Pipe()
	var upload sync.WaitGroup
	upload.Go(func() { h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/default/upload", r)) })
	_, err := w.Write([]byte("x")) // returns when the handler reads the upload
	require.NoError(t, err)
	require.EqualValues(t, 1, h.InFlight())
	_, header, _ := request(t, h, "GET", "/default/services/s/status", "")
	require.Equal(t, "2", header.Get("X-In-Flight"))
	require.NoError(t, w.Close())
	upload.Wait()
	require.Zero(t, h.InFlight())
}

func TestOwnedPaths(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"/default/services/x/echo": true, "/default/upload": true, "/httpbin/get": true,
		"/httpbin": false, "/event/connect": false, "/": false, "/defaults": false,
	} {
		require.Equal(t, want, Owns(path), path)
	}
}
