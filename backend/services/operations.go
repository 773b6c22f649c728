package services

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/backend/answer"
)

const (
	maxText   = 4096 // bytes
	maxValues = 1000
)

// operations maps names to operations, which all services have. It omits registerName, whose request has a body.
var operations = map[string]func(url.Values) (any, error){
	"math.multiply": func(q url.Values) (any, error) { return calculate(q, func(a, b float64) float64 { return a * b }) },
	"math.add":      func(q url.Values) (any, error) { return calculate(q, func(a, b float64) float64 { return a + b }) },
	"math.power":    func(q url.Values) (any, error) { return calculate(q, math.Pow) },
	"string.upper": func(q url.Values) (any, error) {
		text, err := textOf(q)
		return strings.ToUpper(text), err
	},
	"echo": func(q url.Values) (any, error) { return textOf(q) },
	"array.sort": func(q url.Values) (any, error) {
		values, err := valuesOf(q)
		slices.Sort(values)
		return values, err
	},
	"status": func(url.Values) (any, error) { return "ok", nil },
}

const registerName = "account.register"

func operate(w http.ResponseWriter, r *http.Request, path string) error {
	service, name, _ := strings.Cut(path, "/")
	if !answer.ValidName(service) {
		return answer.Refuse(http.StatusNotFound, "the name of a service must have "+answer.NameRule)
	}
	if name == registerName {
		if r.Method != http.MethodPost {
			return answer.NotAllowed(w, http.MethodPost)
		}
		result, err := register(w, r)
		if err != nil {
			return err
		}
		return reply(w, service, name, result)
	}
	operation, ok := operations[name]
	if !ok {
		return answer.Refuse(http.StatusNotFound, "unknown operation; use one of "+registerName+", "+strings.Join(slices.Sorted(maps.Keys(operations)), ", "))
	}
	if r.Method != http.MethodGet {
		return answer.NotAllowed(w, http.MethodGet)
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return errors.New("the query cannot be parsed; in each value, percent-encode all characters except letters and digits")
	}
	result, err := operation(query)
	if err != nil {
		return err
	}
	return reply(w, service, name, result)
}

func reply(w http.ResponseWriter, service, operation string, result any) error {
	return answer.JSON(w, http.StatusOK, map[string]any{"service": service, "operation": operation, "result": result})
}

func calculate(q url.Values, do func(a, b float64) float64) (any, error) {
	var numbers [2]float64
	for i, name := range []string{"a", "b"} {
		var err error
		if numbers[i], err = numberOf(q.Get(name)); err != nil {
			return nil, fmt.Errorf("%s %w, for example ?a=9&b=22", name, err)
		}
	}
	result := do(numbers[0], numbers[1])
	if math.IsNaN(result) || math.IsInf(result, 0) {
		return nil, errors.New("the result is not a finite number; use other numbers")
	}
	return result, nil
}

func numberOf(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, errors.New("must be a finite number")
	}
	return v, nil
}

func textOf(q url.Values) (string, error) {
	text := q.Get("text")
	if !q.Has("text") || len(text) > maxText {
		return "", fmt.Errorf("text is required and may have at most %d bytes, for example ?text=hello", maxText)
	}
	return text, nil
}

func valuesOf(q url.Values) ([]float64, error) {
	parts := strings.Split(q.Get("values"), ",")
	if len(parts) > maxValues {
		return nil, fmt.Errorf("values must have at most %d numbers", maxValues)
	}
	values := make([]float64, len(parts))
	for i, part := range parts {
		v, err := numberOf(part)
		if err != nil {
			return nil, errors.New("values must be numbers separated by commas, for example ?values=3,1,2")
		}
		values[i] = v
	}
	return values, nil
}

// Limits on a registration, in bytes.
const (
	maxRegistration = 4096
	maxMail         = 254
	maxName         = 200
)

// A registration is the body of a client's request for an account, and the result in the response.
type registration struct {
	ID    string `json:"id"` // chosen by the client, and not checked for uniqueness: the service stores nothing
	Email string `json:"email"`
	Name  string `json:"name"`
}

// register checks and normalizes a registration, as a service with a database would. It stores nothing, so memory use
// does not grow during hours of load.
func register(w http.ResponseWriter, r *http.Request) (any, error) {
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRegistration))
	body.DisallowUnknownFields()
	var request registration
	if err := body.Decode(&request); err != nil {
		var tooLong *http.MaxBytesError
		if errors.As(err, &tooLong) {
			return nil, answer.BadBody(err, fmt.Sprintf("a registration must have at most %d bytes", maxRegistration))
		}
		return nil, errors.New(`the body must be an object with id, email and name, such as {"id":"a1","email":"a@example.com","name":"A"}`)
	}
	address, err := mail.ParseAddress(request.Email)
	request.Name = strings.TrimSpace(request.Name)
	switch {
	case body.More():
		return nil, errors.New("the body must be one object without further text")
	case !answer.ValidName(request.ID):
		return nil, errors.New("the id must have " + answer.NameRule)
	case err != nil || address.Address != request.Email || len(request.Email) > maxMail:
		return nil, fmt.Errorf("the email must be an address of at most %d bytes, such as a@example.com", maxMail)
	case request.Name == "" || len(request.Name) > maxName:
		return nil, fmt.Errorf("the name is required and may have at most %d bytes", maxName)
	}
	request.Email = strings.ToLower(request.Email)
	return request, nil
}

// upload responds with the size and the hash of the body, so that the client can verify that the body arrived intact.
// It does not store the body.
func upload(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodPost {
		return answer.NotAllowed(w, http.MethodPost)
	}
	control, deadline := http.NewResponseController(w), time.Now().Add(uploadTimeout)
	_ = control.SetReadDeadline(deadline) // unsupported in tests
	_ = control.SetWriteDeadline(deadline)
	sum := sha256.New()
	n, err := io.Copy(sum, http.MaxBytesReader(w, r.Body, maxUpload))
	if err != nil {
		return answer.BadBody(err, "an upload must be at most 4 GiB; split it")
	}
	return answer.JSON(w, http.StatusOK, map[string]any{"bytes": n, "sha256": hex.EncodeToString(sum.Sum(nil))})
}
