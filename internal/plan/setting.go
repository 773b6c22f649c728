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

// A Setting is one value of a run with its variable, its flag, its bounds and its help; see table.go and scripts.go. It
// is the pflag.Value of its flag, so flag and variable accept the same texts.
type Setting struct {
	Name    string // of the environment variable; the flag is the name in lower case with hyphens
	Value   any    // pointer to the field: *int, *float64, *bool, *string, *[]string or *[]any (of numbers); in scriptSettings, only the type is used
	Default any    // nil: the zero value

	Min, Max  float64  // bounds of a number, if the setting has a Rule; Max 0: no maximum
	NoLimit   bool     // −1 means no limit
	BareValue string   // value of the flag without an argument; "": the argument is required
	ZeroText  string   // text of the zero value, such as "noop" for SERVICE; "": zero must be within the bounds
	Texts     []string // valid values of a text; nil: any
	Rule      string   // for a value out of bounds: NAME must be RULE

	Help       string // of the flag; "": no flag, `soak run` chooses the value
	SuiteHelp  string // help of the same flag of a suite whose script declares the plan; "": such suites have no such flag
	Script     string // property in scripts (k6/x/soak), with a question mark if it is optional
	ScriptHelp string // help in load-tests/types/soak.d.ts; "": Help
	Doc        string // page with details
	OnlySuite  string // the only suite with the flag; "": the soak, and suites with its plan
	Scope      Scope
}

// A Scope is the set of machines on which a setting must have the same value. The zero value is the widest, so that a
// merge compares a new setting by default.
type Scope int

const (
	Laptops   Scope = iota // all machines, including laptops that ran k6 alone
	Parts                  // all parts of one run; values of laptops may differ
	Runners                // runners receive the setting, but a merge does not compare it
	LocalOnly              // only this machine; runners do not receive the setting
)

var _ pflag.Value = Setting{}

// Flag returns the name of the flag.
func (s Setting) Flag() string { return strings.ToLower(strings.ReplaceAll(s.Name, "_", "-")) }

// Type returns the name of the value's type. For a list it returns the type of an element.
func (s Setting) Type() string {
	return strings.TrimPrefix(reflect.TypeOf(s.Value).Elem().String(), "[]")
}

func (s Setting) value() any { return reflect.ValueOf(s.Value).Elem().Interface() }

// String returns the value in the form that Set accepts. It does not support lists of numbers.
func (s Setting) String() string {
	if s.ZeroText != "" && reflect.ValueOf(s.Value).Elem().IsZero() {
		return s.ZeroText
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

// number formats a number without an exponent.
func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// Set parses text and sets the value. To a list of texts, Set appends the lines of text; to a list of numbers, it
// appends the numbers, which are separated by commas.
func (s Setting) Set(text string) (err error) {
	if s.ZeroText != "" && text == s.ZeroText {
		s.assign(nil)
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
	case *[]string: // a flag is repeatable; a variable has one value per line
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" {
				*v = append(*v, line)
			}
		}
	case *[]any:
		for part := range strings.SplitSeq(text, ",") {
			n, err := strconv.Atoi(strings.TrimSpace(part))
			if err != nil || n < 1 {
				return fmt.Errorf("must be positive whole numbers separated by commas, such as 20,50,100, got %q", text)
			}
			*v = append(*v, n)
		}
	}
	if err != nil {
		return fmt.Errorf("must be %s, got %q", Kind(s), text)
	}
	s.Normalize()
	return nil
}

// Parse parses and validates text, and returns the value. It does not change the value of s.
func (s Setting) Parse(text string) (any, error) {
	s.Value = reflect.New(reflect.TypeOf(s.Value).Elem()).Interface()
	if err := s.Set(text); err != nil {
		return nil, fmt.Errorf("%s %w", s.Name, err)
	}
	return s.Get(), s.check()
}

// secondsSettings lists the settings in seconds whose names do not end in SECONDS.
var secondsSettings = []string{
	"NOOP_INTERVAL", "WINDOW", "MAX_OUTAGE", "BACK_WITHIN", "END_TIMEOUT", "TOKEN_TTL", "PAUSE", "MEAN_HOLD", "FIRST_TIMEOUT", "IDLE_TIMEOUT", "LINGER", "DRAIN",
	"MAX_TOTAL_S",
}

// ParseNumber parses the value of a number setting. A setting in seconds may be a duration, such as 90s or 10m.
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

// parseWhole parses the value of a whole-number setting. A setting in seconds may be a duration of whole seconds.
func parseWhole(name, text string) (int, error) {
	if d, ok := duration(name, text); ok && d%time.Second == 0 {
		return int(d / time.Second), nil
	}
	return strconv.Atoi(text) //nolint:wrapcheck // the caller knows the setting
}

// duration parses a value with a unit, such as 90s. ok is false for other values, and for settings not in seconds.
func duration(name, text string) (d time.Duration, ok bool) {
	if !isSeconds(name) {
		return 0, false
	}
	d, err := time.ParseDuration(text)
	return d, err == nil
}

func isSeconds(name string) bool {
	return strings.HasSuffix(name, "SECONDS") || slices.Contains(secondsSettings, name)
}

// Normalize sets a value whose text is ZeroText to zero, so that plans with the same meaning are equal.
func (s Setting) Normalize() {
	if s.ZeroText != "" && s.String() == s.ZeroText {
		s.assign(nil)
	}
}

// Kind describes the values that a flag accepts.
func Kind(flag pflag.Value) string {
	kinds := map[string]string{"int": "a whole number", "float64": "a number", "bool": "1 or 0", "duration": "a duration, such as 90s or 10m"}
	kind := cmp.Or(kinds[flag.Type()], "of type "+flag.Type())
	if s, ok := flag.(Setting); ok && isSeconds(s.Name) {
		return kind + " of seconds, or a duration such as 90s or 10m"
	}
	return kind
}

// Property returns the name of the property in scripts, "" for none, and reports whether it is optional.
func (s Setting) Property() (name string, optional bool) { return strings.CutSuffix(s.Script, "?") }

// Get returns the value for scripts. For a string it returns the text of String, so "" becomes ZeroText.
func (s Setting) Get() any {
	if s.Type() == "string" {
		return s.String()
	}
	return s.value()
}

// assign sets the value; nil is the zero value.
func (s Setting) assign(value any) {
	field := reflect.ValueOf(s.Value).Elem()
	field.SetZero()
	if value != nil {
		field.Set(reflect.ValueOf(value))
	}
}

func reset(settings []Setting) {
	for _, s := range settings {
		s.assign(s.Default)
	}
}

// check returns an error if the value is out of bounds, or is not one of Texts. A setting without a Rule has no bounds.
// Below the minimum, -1 is valid with NoLimit, and 0 with a ZeroText.
func (s Setting) check() error {
	n, err := strconv.ParseFloat(s.String(), 64)
	inRange := n >= s.Min && (s.Max == 0 || n <= s.Max) // false for NaN
	unset := s.ZeroText != "" && n == 0
	valid := err == nil && (inRange || s.NoLimit && n == -1 || unset)
	if s.Texts != nil {
		valid = slices.Contains(s.Texts, s.String())
	}
	if s.Rule == "" || valid {
		return nil
	}
	if s.Max == maxNumber && n > s.Max {
		s.Rule = "at most " + number(s.Max)
	}
	return fmt.Errorf("%s must be %s, got %#v", s.Name, s.Rule, s.value())
}

// AddFlags adds a flag for each setting that has a Help. The help of the flag ends with the variable in brackets.
func AddFlags(flags *pflag.FlagSet, settings []Setting) {
	for _, s := range settings {
		if s.Help == "" {
			continue
		}
		flag := flags.VarPF(s, s.Flag(), "", s.Help+" ["+s.Name+"]")
		flag.NoOptDefVal = s.BareValue
		if s.Type() == "bool" {
			flag.NoOptDefVal = "true"
		}
	}
}

// FlagsFromEnvironment sets each flag from its variable, unless the flag is on the command line or the variable is
// empty. It returns the variables that it used, as NAME=value.
func FlagsFromEnvironment(flags *pflag.FlagSet) (used []string, err error) {
	flags.VisitAll(func(flag *pflag.Flag) {
		s, ok := flag.Value.(Setting)
		if !ok || flag.Changed || err != nil || os.Getenv(s.Name) == "" {
			return
		}
		value := os.Getenv(s.Name)
		if flags.Set(flag.Name, value) != nil {
			err = fmt.Errorf("%s must be %s, got %q", s.Name, Kind(s), value)
		}
		used = append(used, s.Name+"="+value)
	})
	return used, err
}

// SuiteSettings returns the settings that every suite has, with SuiteHelp as their help.
func SuiteSettings(settings []Setting) (out []Setting) {
	for _, s := range settings {
		if s.SuiteHelp != "" {
			s.Help = s.SuiteHelp
			out = append(out, s)
		}
	}
	return out
}

// ForSuite returns the settings of a suite that has the plan of a soak; "" is the soak. It modifies the slice.
func ForSuite(suite string, settings []Setting) []Setting {
	return slices.DeleteFunc(settings, func(s Setting) bool { return s.OnlySuite != "" && s.OnlySuite != suite })
}

// Default returns the default plan: 1200 streams for an hour, one noop every 15 s, one stream per virtual user.
func Default() (p Plan) {
	reset(p.Settings())
	p.ConnectionsPerVU = 1
	return p
}

// DefaultLocal returns the defaults of the settings outside the plan.
func DefaultLocal() (l Local) {
	reset(l.Settings())
	return l
}

// ReadEnvironment sets each field to the value that lookup returns for its variable. An empty value leaves the field
// unchanged.
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

// Difference describes the first difference between two plans, in settings of the given scope or a wider one. It
// returns "" if all these settings are equal.
func Difference(want, other Plan, scope Scope) string {
	planned := want.Settings()
	for i, s := range other.Settings() {
		if s.Scope <= scope && !reflect.DeepEqual(s.value(), planned[i].value()) {
			return fmt.Sprintf("%s is %s, not %s", s.Name, cmp.Or(fmt.Sprint(s.value()), `""`), cmp.Or(fmt.Sprint(planned[i].value()), `""`))
		}
	}
	return ""
}
