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

// A Document is the input that `soak run` passes to a runner: the plan, and the settings of the suite's script.
type Document struct {
	Plan     Plan              `json:"plan"`
	Settings map[string]string `json:"settings,omitempty"` // by name
}

// Document returns the document of a plan and the settings of the suite's script. If the plan has no connections, the
// script declares the load. The document then has only the settings of p that every suite has or that have no flag. All
// other settings have the defaults of scripts.
func (p Plan) Document(settings map[string]string) Document {
	if p.Connections > 0 {
		return Document{Plan: p, Settings: settings}
	}
	d := Document{Plan: scriptDefaults(), Settings: settings}
	declared := d.Plan.Settings()
	for i, s := range p.Settings() {
		if s.SuiteHelp != "" || s.Help == "" {
			declared[i].assign(s.value())
		}
	}
	return d
}

// Variables returns the environment variables that pass the document to a runner. One of them is NOOP_INTERVAL, which
// service descriptions read.
func (d Document) Variables() map[string]string {
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

// A Source provides the plan and the settings of the suite's script to a runner: from the document, or from the
// variables of a `k6 run` without soak.
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

// WithSeconds returns the document with a different length of the run. Without a document, only the length is set.
func (s *Source) WithSeconds(seconds int) (d Document) {
	if s.document != nil {
		d = *s.document
	}
	d.Plan.Seconds = seconds
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

// scriptDefaults returns the default plan of a script that k6 runs without soak.
func scriptDefaults() (p Plan) {
	for _, s := range p.Settings() {
		s.assign(s.Default)
		if s.WithoutSoak != nil {
			s.assign(s.WithoutSoak)
		}
		s.Normalize()
	}
	return p
}
