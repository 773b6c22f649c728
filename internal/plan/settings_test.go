package plan

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// another sets one field to another value than it has.
func another(t *testing.T, p Plan, index int) Plan {
	t.Helper()
	switch f := reflect.ValueOf(&p).Elem().Field(index); f.Kind() {
	case reflect.Bool:
		f.SetBool(!f.Bool())
	case reflect.Int:
		f.SetInt(f.Int() + 1)
	case reflect.Float64:
		f.SetFloat(f.Float() + .5)
	case reflect.String:
		f.SetString(f.String() + "x")
	default:
		t.Fatalf("%s: teach settings.go this kind of field", reflect.TypeFor[Plan]().Field(index).Name)
	}
	return p
}

// A field that is added to the plan reaches the runners and is compared, or this fails.
func TestEveryFieldOfThePlanIsTransportedAndCompared(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, s := range settings() {
		field := reflect.TypeFor[Plan]().Field(s.index).Name
		require.NotEmpty(t, s.name, "%s needs the tag env, the name of its variable", field)
		require.False(t, seen[s.name], "two fields have the variable %s", s.name)
		seen[s.name] = true

		p := another(t, good(), s.index)
		require.Contains(t, Difference(good(), p), s.name+" is ", "%s is not compared", field)
		require.Empty(t, Difference(good(), p, s.name))
		read := Default()
		if s.name == "RECONNECT" {
			read.Reconnect = !p.Reconnect
		}
		environment := p.Environment()
		require.NoError(t, read.ReadEnvironment(func(name string) string { return environment[name] }))
		require.Equal(t, p, read, "%s does not arrive", field)
	}
	require.Empty(t, Difference(good(), good()))
}

func TestWhatIsNoSetting(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"MAX_LATE": `MAX_LATE is "x": it must be a whole number`, "NOOP_INTERVAL": `NOOP_INTERVAL is "x": it must be a number`,
	} {
		p := Default()
		require.EqualError(t, p.ReadEnvironment(func(n string) string { return map[string]string{name: "x"}[n] }), want)
	}
}
