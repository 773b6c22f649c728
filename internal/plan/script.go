package plan

import (
	"fmt"
	"reflect"
	"strings"
)

// OfScript returns the plan of a script: the defaults without soak, and the variables that lookup knows. It checks the bounds of
// the interval only, because a description may contain it.
func OfScript(lookup func(name string) string) (p Plan, err error) {
	for _, s := range p.Settings() {
		if value := s.withoutSoak(); value != nil {
			reflect.ValueOf(s.Value).Elem().Set(reflect.ValueOf(value))
		}
	}
	if err := p.ReadEnvironment(lookup); err != nil {
		return p, err
	}
	for _, s := range p.Settings() {
		if s.Value == &p.NoopInterval {
			err = s.check()
		}
	}
	return p, err
}

// CheckScript returns an error if a property that scripts state is out of its bounds, and normalizes the URL of the service.
func (p *Plan) CheckScript() (err error) {
	for _, s := range p.Settings() {
		if s.Script == "" || s.value() == s.withoutSoak() {
			continue
		}
		if err := s.check(); err != nil {
			return err
		}
	}
	if strings.TrimSpace(p.BackendURL) == "" {
		return fmt.Errorf("BACKEND_URL is missing; name the service to test, such as --env BACKEND_URL=http://127.0.0.1:8080")
	}
	p.BackendURL, err = NormalURL("BACKEND_URL", p.BackendURL)
	return err
}

// withoutSoak returns the default of a script that k6 runs without soak, nil for the zero value.
func (s Setting) withoutSoak() any {
	if s.WithoutSoak != nil {
		return s.WithoutSoak
	}
	return s.Default
}

// Property returns the name of the property that scripts state, "" for none, and whether they may leave it out.
func (s Setting) Property() (name string, optional bool) { return strings.CutSuffix(s.Script, "?") }

// Get returns the value as scripts read it: with the text of an unset one.
func (s Setting) Get() any {
	if s.Type() == "string" {
		return s.String()
	}
	return s.value()
}
