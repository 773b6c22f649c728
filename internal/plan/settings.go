package plan

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
)

// A setting is a field of a plan by the name of its environment variable, the tag `env`. The tags
// are the one table: what is in it reaches the runners, stands in their shards and is compared by
// a merge.
type setting struct {
	name  string
	index int
}

func settings() (out []setting) {
	for i := range reflect.TypeFor[Plan]().NumField() {
		out = append(out, setting{reflect.TypeFor[Plan]().Field(i).Tag.Get("env"), i})
	}
	return out
}

// Environment is the plan as a runner is told it, by variable.
func (p Plan) Environment() map[string]string {
	out := map[string]string{}
	for _, s := range settings() {
		out[s.name] = text(reflect.ValueOf(p).Field(s.index))
	}
	return out
}

// text is a value as ReadEnvironment reads it.
func text(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Bool:
		return map[bool]string{true: "1", false: "0"}[v.Bool()]
	case reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'f', -1, 64)
	}
	return fmt.Sprint(v.Interface())
}

// ReadEnvironment sets the fields whose variables lookup knows; "" leaves a field as it is.
func (p *Plan) ReadEnvironment(lookup func(name string) string) error {
	for _, s := range settings() {
		value := lookup(s.name)
		if value == "" {
			continue
		}
		if err := parse(reflect.ValueOf(p).Elem().Field(s.index), value); err != nil {
			return fmt.Errorf("%s is %q: %w", s.name, value, err)
		}
	}
	return nil
}

func parse(to reflect.Value, value string) error {
	switch to.Kind() {
	case reflect.Bool:
		to.SetBool(value == "1" || value == "true")
	case reflect.Float64:
		f, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return fmt.Errorf("it must be a number")
		}
		to.SetFloat(f)
	case reflect.Int:
		n, err := strconv.Atoi(value)
		if err != nil {
			return fmt.Errorf("it must be a whole number")
		}
		to.SetInt(int64(n))
	default:
		to.SetString(value)
	}
	return nil
}

// Difference names the first setting in which got is not what want says, "" where there is none.
// All settings count but those that are left out by their names, so that one that is added later
// is compared too.
func Difference(want, got Plan, leaveOut ...string) string {
	for _, s := range settings() {
		w, g := reflect.ValueOf(want).Field(s.index).Interface(), reflect.ValueOf(got).Field(s.index).Interface()
		if w != g && !slices.Contains(leaveOut, s.name) {
			return fmt.Sprintf("%s is %v, planned was %v", s.name, g, w)
		}
	}
	return ""
}
