package plan

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// A Setting is one value of a run: its variable, its flag, its bounds and its help. table.go has all of
// them. It is the pflag.Value of its flag, so flag and variable read the same.
type Setting struct {
	Name        string // of the environment variable. The flag is it in lower case with hyphens
	Value       any    // *int, *float64, *bool, *string or *[]string: the field that holds it
	Default     any    // nil: the zero value
	WithoutSoak any    // default of a script under `k6 run` without soak; nil: Default

	Min, Max float64 // bounds of a number; Max 0: none
	Any      bool    // −1 means any number
	Bare     string  // value of the flag without an argument; "": the argument is required
	Unset    string  // how the zero value is written, which then is within the bounds: "noop" for no service
	Rule     string  // for a number out of bounds: NAME must be RULE

	Help       string // of the flag; "": no flag, `soak run` chooses the value
	SuiteHelp  string // help of the same flag of `soak run SUITE`; "": suites have no such flag
	Script     string // property that a script states (k6/x/soak), with a question mark if it may be left out
	ScriptHelp string // help in load-tests/types/soak.d.ts; "": Help
	Doc        string // page with more
	Only       string // the one suite of `soak run` that has the flag; "": the soak, and suites that have its plan
	Holds      Scope
}

// A Scope defines on which machines a setting must be the same. The zero value is the widest, so that a merge
// compares a new setting unless its row limits that.
type Scope int

const (
	Laptops   Scope = iota // the same on all machines, also on laptops that ran k6 alone
	Parts                  // the same in all parts of one run; each laptop may have its own
	Runners                // runners get it, but a merge does not compare it: it checks this in another way
	LocalOnly              // only for this machine; runners do not get it
)

var _ pflag.Value = Setting{}

// Flag returns the name of the flag.
func (s Setting) Flag() string { return strings.ToLower(strings.ReplaceAll(s.Name, "_", "-")) }

// Type returns the kind of value, with pflag's name.
func (s Setting) Type() string {
	return strings.TrimPrefix(reflect.TypeOf(s.Value).Elem().String(), "[]")
}

func (s Setting) value() any { return reflect.ValueOf(s.Value).Elem().Interface() }

// String returns the value in the form that Set reads.
func (s Setting) String() string {
	if s.Unset != "" && reflect.ValueOf(s.Value).Elem().IsZero() {
		return s.Unset
	}
	switch v := s.value().(type) {
	case bool:
		return map[bool]string{true: "1", false: "0"}[v]
	case float64:
		return number(v)
	case []string:
		return strings.Join(v, "\n")
	default:
		return fmt.Sprint(v)
	}
}

// number returns the text of a number.
func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// Set reads the value from text.
func (s Setting) Set(text string) (err error) {
	if s.Unset != "" && text == s.Unset {
		s.Clear()
		return nil
	}
	switch v := s.Value.(type) {
	case *bool:
		*v, err = strconv.ParseBool(text)
	case *float64:
		*v, err = ParseNumber(s.Name, text)
	case *int:
		*v, err = parseWhole(s.Name, text)
	case *string:
		*v = text
	case *[]string: // a flag may be given again; a variable has one in each line
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" {
				*v = append(*v, line)
			}
		}
	}
	if err != nil {
		return fmt.Errorf("must be %s, got %q", s.kind(), text)
	}
	s.Normalize()
	return nil
}

// inSeconds lists the settings in seconds whose names do not end in SECONDS.
var inSeconds = []string{"NOOP_INTERVAL", "WINDOW", "MAX_OUTAGE", "BACK_WITHIN", "END_TIMEOUT", "TOKEN_TTL", "PAUSE", "MEAN_HOLD"}

// ParseNumber reads the value of a number setting. A setting in seconds may be a duration, such as 90s or 10m.
func ParseNumber(name, text string) (float64, error) {
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err == nil && !math.IsInf(v, 0) && !math.IsNaN(v) {
		return v, nil
	}
	if d, ok := duration(name, text); ok {
		return d.Seconds(), nil
	}
	return 0, fmt.Errorf("must be a number, got %q", text)
}

// parseWhole parses a whole number, with the rules of ParseNumber.
func parseWhole(name, text string) (int, error) {
	if d, ok := duration(name, text); ok && d%time.Second == 0 {
		return int(d / time.Second), nil
	}
	return strconv.Atoi(text) //nolint:wrapcheck // the caller knows the setting
}

// duration reads the value of a setting in seconds with a unit.
func duration(name, text string) (d time.Duration, ok bool) {
	if !isSeconds(name) {
		return 0, false
	}
	d, err := time.ParseDuration(text)
	return d, err == nil
}

// isSeconds reports whether a setting is in seconds.
func isSeconds(name string) bool {
	return strings.HasSuffix(name, "SECONDS") || slices.Contains(inSeconds, name)
}

// Normalize sets a value to its normal form, such as 5 for "5.0".
func (s Setting) Normalize() {
	if s.Unset != "" && s.String() == s.Unset {
		s.Clear()
	}
}

// Kind returns in words the values that a flag accepts.
func Kind(flag pflag.Value) string {
	if s, ok := flag.(Setting); ok {
		return s.kind()
	}
	return kindOf(flag.Type())
}

func (s Setting) kind() string {
	if isSeconds(s.Name) {
		return kindOf(s.Type()) + " of seconds, or a duration such as 90s or 10m"
	}
	return kindOf(s.Type())
}

func kindOf(flagType string) string {
	words := map[string]string{"int": "a whole number", "float64": "a number", "bool": "1 or 0", "duration": "a duration, such as 90s or 10m"}
	return cmp.Or(words[flagType], "of type "+flagType)
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

// Clear leaves the value at zero.
func (s Setting) Clear() { reflect.ValueOf(s.Value).Elem().SetZero() }

// reset sets each value to its default.
func reset(settings []Setting) {
	for _, s := range settings {
		s.Clear()
		if s.Default != nil {
			reflect.ValueOf(s.Value).Elem().Set(reflect.ValueOf(s.Default))
		}
	}
}

// check returns an error in one sentence if a number is out of its bounds.
func (s Setting) check() error {
	n, err := strconv.ParseFloat(s.String(), 64)
	inRange := n >= s.Min && (s.Max == 0 || n <= s.Max) // not for NaN
	unset := s.Unset != "" && n == 0
	if s.Rule == "" || err == nil && inRange || s.Any && n == -1 || err == nil && unset {
		return nil
	}
	return fmt.Errorf("%s must be %s, got %v", s.Name, s.Rule, s.value())
}

// AddFlags adds a flag for each setting that has one, with its variable in brackets.
func AddFlags(flags *pflag.FlagSet, settings []Setting) {
	for _, s := range settings {
		if s.Help == "" {
			continue
		}
		flag := flags.VarPF(s, s.Flag(), "", s.Help+" ["+s.Name+"]")
		flag.NoOptDefVal = s.Bare
		if s.Type() == "bool" {
			flag.NoOptDefVal = "true"
		}
	}
}

// FlagsFromEnvironment sets each flag of a setting that is not on the command line from its variable.
func FlagsFromEnvironment(flags *pflag.FlagSet) (err error) {
	flags.VisitAll(func(flag *pflag.Flag) {
		s, ok := flag.Value.(Setting)
		if !ok || flag.Changed || err != nil {
			return
		}
		if value := os.Getenv(s.Name); value != "" && flags.Set(flag.Name, value) != nil {
			err = fmt.Errorf("%s must be %s, got %q", s.Name, s.kind(), value)
		}
	})
	return err
}

// EnvironmentSettings returns the settings that FlagsFromEnvironment sets, as NAME=value: with them a command line is
// complete.
func EnvironmentSettings(flags *pflag.FlagSet) (out []string) {
	flags.VisitAll(func(flag *pflag.Flag) {
		if s, ok := flag.Value.(Setting); ok && !flag.Changed && os.Getenv(s.Name) != "" {
			out = append(out, s.Name+"="+os.Getenv(s.Name))
		}
	})
	return out
}

// OfSuites returns the settings that `soak run SUITE` has too, with their help there.
func OfSuites(settings []Setting) (out []Setting) {
	for _, s := range settings {
		if s.SuiteHelp != "" {
			s.Help = s.SuiteHelp
			out = append(out, s)
		}
	}
	return out
}

// ForSuite returns the settings of a suite with the plan of a soak; "" is the soak itself.
func ForSuite(suite string, settings []Setting) []Setting {
	return slices.DeleteFunc(settings, func(s Setting) bool { return s.Only != "" && s.Only != suite })
}

// Default returns the original test: 1200 connections for an hour, one noop every 15 s.
func Default() (p Plan) {
	reset(p.Settings())
	p.ConnectionsPerVU = 1
	return p
}

// DefaultLocal returns the defaults of settings outside of the plan.
func DefaultLocal() (l Local) {
	reset(l.Settings())
	return l
}

// ReadEnvironment sets the fields whose variables lookup knows; "" leaves a field as it is.
func (p *Plan) ReadEnvironment(lookup func(name string) string) error {
	for _, s := range p.Settings() {
		value := lookup(s.Name)
		if value == "" {
			continue
		}
		if err := s.Set(value); err != nil {
			return fmt.Errorf("%s %w", s.Name, err)
		}
	}
	return nil
}

// Difference names the first setting in which got differs from want, among those with at least this scope; "" if
// there is none.
func Difference(want, other Plan, scope Scope) string {
	wanted := want.Settings()
	for i, s := range other.Settings() {
		if w := wanted[i]; s.Holds <= scope && !reflect.DeepEqual(s.value(), w.value()) {
			return fmt.Sprintf("%s is %v, planned was %v", s.Name, s.value(), w.value())
		}
	}
	return ""
}
