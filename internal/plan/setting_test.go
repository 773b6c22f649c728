package plan

import (
	"reflect"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

func change(t *testing.T, s Setting) {
	t.Helper()
	switch v := s.Value.(type) {
	case *bool:
		*v = !*v
	case *int:
		*v++
	case *float64:
		*v += .5
	case *string:
		*v += "x"
	case *[]string:
		*v = append(*v, "x")
	default:
		t.Fatalf("%s: Setting.Set and the generator do not support its type", s.Name)
	}
}

func TestEveryFieldReachesRunnersAndIsCompared(t *testing.T) {
	t.Parallel()
	var p Plan
	inTable := map[any]string{}
	for _, s := range p.Settings() {
		inTable[s.Value] = s.Name
	}
	fields := reflect.ValueOf(&p).Elem()
	require.Len(t, p.Settings(), fields.NumField())
	names := map[string]bool{}
	for i := range fields.NumField() {
		name := inTable[fields.Field(i).Addr().Interface()]
		require.NotEmpty(t, name, "%s is not in the table of settings", fields.Type().Field(i).Name)
		require.False(t, names[name], "two settings are named %s", name)
		names[name] = true
	}
	for i, s := range p.Settings() {
		changed := validPlan()
		change(t, changed.Settings()[i])
		for _, variables := range []map[string]string{Document{Plan: changed}.Variables(), Document{Plan: changed}.PodVariables()} {
			source, err := SourceOf(func(name string) string { return variables[name] })
			require.NoError(t, err)
			read, err := source.Plan()
			require.NoError(t, err)
			require.Equal(t, changed, read, "%s does not reach the runner", s.Name)
		}

		require.Contains(t, Difference(validPlan(), changed, Runners), s.Name+" is ")
		if s.Scope > Laptops {
			require.Empty(t, Difference(validPlan(), changed, s.Scope-1))
		}
	}
	require.Empty(t, Difference(validPlan(), validPlan(), Runners))
	unnamed := validPlan()
	unnamed.TestID = ""
	require.Equal(t, `TESTID is "", not t`, Difference(validPlan(), unnamed, Runners))
}

// The document of a suite has the defaults of scripts, overridden by the settings of the suite.
func TestDocumentOfASuite(t *testing.T) {
	t.Parallel()
	p := Plan{Suite: "churn", RunID: "r", TestID: "t", Runners: 3, BackendURL: "http://h"}
	require.NoError(t, p.CheckDeclared(), "settings that the script declares must not be checked")
	variables := Document{Plan: p, Settings: map[string]string{"MEAN_HOLD": "2", "NOOP_INTERVAL": "1s"}}.Variables()
	source, err := SourceOf(func(name string) string { return variables[name] })
	require.NoError(t, err)
	require.Equal(t, []string{"2", "3", "http://h", "1000", ""}, []string{source.Text("MEAN_HOLD"), source.Text("RUNNERS"), source.Text("BACKEND_URL"), source.Text("LATE_MS"), source.Text("STEP")})
	got, err := source.Plan()
	require.NoError(t, err)
	want := scriptDefaults()
	want.Suite, want.RunID, want.TestID, want.Runners, want.BackendURL, want.NoopInterval, want.Control = "churn", "r", "t", 3, "http://h", 1, 0
	require.Equal(t, want, got)

	_, err = SourceOf(func(string) string { return "{" })
	require.ErrorContains(t, err, "read K6_SOAK_PLAN: ")
}

func TestSettingsInSecondsMayBeDurations(t *testing.T) {
	t.Parallel()
	p := Default()
	require.NoError(t, p.ReadEnvironment(func(name string) string {
		return map[string]string{"SECONDS": "10m", "NOOP_INTERVAL": "500ms", "MAX_OUTAGE": "1m30s", "END_TIMEOUT": "60"}[name]
	}))
	require.Equal(t, 600, p.Seconds)
	require.Equal(t, []float64{.5, 90, 60}, []float64{p.NoopInterval, p.MaxOutageS, p.EndTimeoutS})
	for name, text := range map[string]string{"SECONDS": "1.5s", "LATE_MS": "10s", "CONNECTIONS": "5m"} {
		require.Error(t, p.ReadEnvironment(func(n string) string { return map[string]string{name: text}[n] }), name)
	}
	hold, err := ParseNumber("STAGE_SECONDS", "2m")
	require.NoError(t, err)
	require.InDelta(t, 120, hold, 0)
}

func TestDefaultsHaveTheTypeOfTheirSetting(t *testing.T) {
	t.Parallel()
	p, l := Default(), DefaultLocal()
	for _, s := range append(p.Settings(), l.Settings()...) {
		if s.Default != nil {
			require.IsType(t, reflect.ValueOf(s.Value).Elem().Interface(), s.Default, s.Name)
		}
		require.NoError(t, s.check(), s.Name)
	}
}

func TestReadEnvironmentRejectsValuesOfTheWrongType(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"MAX_LATE":      `MAX_LATE must be a whole number, got "x"`,
		"NOOP_INTERVAL": `NOOP_INTERVAL must be a number of seconds, or a duration such as 90s or 10m, got "x"`,
		"RECONNECT":     `RECONNECT must be 1 or 0, got "x"`,
	} {
		p := Default()
		require.EqualError(t, p.ReadEnvironment(func(n string) string { return map[string]string{name: "x"}[n] }), want)
	}
}

func TestFlagOverridesItsVariable(t *testing.T) {
	t.Setenv("CONNECTIONS", "7")
	t.Setenv("SECONDS", "60")
	t.Setenv("RECONNECT", "1")
	p := Default()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	AddFlags(flags, p.Settings())
	require.NoError(t, flags.Parse([]string{"--seconds", "90"}))
	used, err := FlagsFromEnvironment(flags)
	require.NoError(t, err)
	require.Equal(t, []string{"CONNECTIONS=7", "RECONNECT=1"}, used)
	require.Equal(t, []int{7, 90, 2}, []int{p.Connections, p.Seconds, p.Runners})
	require.True(t, p.Reconnect)
	require.Nil(t, flags.Lookup("soak-run-id"), "a value that `soak run` chooses must have no flag")

	t.Setenv("LATE_MS", "soon")
	_, err = FlagsFromEnvironment(flags)
	require.EqualError(t, err, `LATE_MS must be a whole number, got "soon"`)
	require.NoError(t, flags.Parse([]string{"--reconnect"}), "a boolean flag must need no value")
}
