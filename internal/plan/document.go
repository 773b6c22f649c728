package plan

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// DocumentVariable is the environment variable that passes a Document to a runner.
const DocumentVariable = "K6_SOAK_PLAN"

// A Document is the input that `soak run` passes to a runner.
type Document struct {
	Plan         Plan              `json:"plan"`
	Settings     map[string]string `json:"settings,omitempty"`       // of the suite's script, by name
	Actions      []Action          `json:"actions,omitempty"`        // for metrics; without commands, which may contain secrets
	OneClock     bool              `json:"one_clock,omitempty"`      // publisher and runners are on one machine
	FirstStartUS int64             `json:"first_start_us,omitempty"` // start of the first runner that this one replaces, in Unix microseconds; 0: none
}

// declared returns the plan of the document. If the plan has 0 connections, the script declares the load. The result
// then has only the settings that every suite has or that have no flag. All other settings have the defaults of
// scripts.
func (d Document) declared() Plan {
	if d.Plan.Connections > 0 {
		return d.Plan
	}
	p := scriptDefaults()
	declared := p.Settings()
	for i, s := range d.Plan.Settings() {
		if s.SuiteHelp != "" || s.Help == "" {
			declared[i].assign(s.value())
		}
	}
	return p
}

// Variables returns the environment variables that pass the document to a runner. One of them is NOOP_INTERVAL, which
// service descriptions read.
func (d Document) Variables() map[string]string {
	d.Plan = d.declared()
	text, _ := json.Marshal(d) // a document has no value that JSON cannot represent
	return map[string]string{DocumentVariable: string(text), "NOOP_INTERVAL": number(d.Plan.NoopInterval)}
}

// PodVariables returns Variables in an encoding without characters that a shell interprets, because the k6-operator
// writes the values into a shell command.
func (d Document) PodVariables() map[string]string {
	all := d.Variables()
	all[DocumentVariable] = base64.RawURLEncoding.EncodeToString([]byte(all[DocumentVariable]))
	return all
}

// A Source provides the plan and the settings of the suite's script to a runner. They come from the document, or from
// the variables of a `k6 run` without soak.
type Source struct {
	document *Document // nil: the variables are the source
	variable func(name string) string
}

// SourceOf returns the source of a runner. variable must return the value of an environment variable, or "" if the
// variable is not set.
func SourceOf(variable func(name string) string) (*Source, error) {
	s := &Source{variable: variable}
	text := variable(DocumentVariable)
	if text == "" {
		return s, nil
	}
	data, err := []byte(text), error(nil)
	if !strings.HasPrefix(text, "{") {
		data, err = base64.RawURLEncoding.DecodeString(text)
	}
	if err == nil {
		err = json.Unmarshal(data, &s.document)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w; run the script with soak, or without this variable", DocumentVariable, err)
	}
	return s, nil
}

// Setting returns the text of a setting of the suite's script from the document or, without a document, from the
// setting's variable. It returns "" for a setting that is not set.
func (s *Source) Setting(name string) string {
	if s.document != nil {
		return s.document.Settings[name]
	}
	return s.variable(name)
}

// CheckInterval validates the interval of the plan, because a service description may read it.
func (s *Source) CheckInterval() error {
	p, err := s.Plan()
	if err == nil {
		_, err = ParseInterval(number(p.NoopInterval))
	}
	return err
}

// ParseInterval parses and validates a value of NOOP_INTERVAL.
func ParseInterval(text string) (time.Duration, error) {
	seconds, err := sharedRows("NOOP_INTERVAL")[0].Parse(text)
	p := Plan{}
	p.NoopInterval, _ = seconds.(float64)
	return p.Interval(), err
}

// Plan returns the plan of the document, or the defaults of scripts, changed by the settings of the source.
func (s *Source) Plan() (Plan, error) {
	p := s.Base()
	err := p.ReadEnvironment(s.Setting)
	return p, err
}

// Document returns the document, or the zero value without a document.
func (s *Source) Document() (d Document) {
	if s.document != nil {
		d = *s.document
	}
	return d
}

// Text returns the text of a setting of the script or of the plan. It returns "" if neither has the setting.
func (s *Source) Text(name string) string {
	if text := s.Setting(name); text != "" {
		return text
	}
	p := s.Base()
	for _, setting := range p.Settings() {
		if setting.Name == name {
			return setting.String()
		}
	}
	return ""
}

// Base returns the plan of the document, or the defaults of scripts, without the changes by settings of the source.
func (s *Source) Base() Plan {
	if s.document != nil {
		return s.document.Plan
	}
	return scriptDefaults()
}

// scriptDefaults returns the default plan of a script that k6 runs without soak. It has one runner, and the options of
// k6 may set the number of streams.
func scriptDefaults() Plan {
	p := Default()
	p.Connections, p.Runners = 0, 1
	return p
}
