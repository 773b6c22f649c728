package services

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/mail"
	"strings"

	"github.com/sse-soak/sse-soak/backend/answer"
)

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

// register checks and normalizes a registration, as a service with a database would. It stores nothing, so that hours
// of load use no memory.
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
		return nil, errors.New("the email must be an address such as a@example.com")
	case request.Name == "" || len(request.Name) > maxName:
		return nil, fmt.Errorf("the name is required and may have at most %d bytes", maxName)
	}
	request.Email = strings.ToLower(request.Email)
	return request, nil
}
