package runners

import (
	"os"
	"slices"
	"strings"
)

// inheritedVariables lists the k6 variables that a runner inherits, in addition to the variables with
// RemoteWritePrefix. The listed variables determine how k6 connects to the service. Any other variable could change the
// load (K6_VUS, K6_STAGES, K6_RPS, …) or the output (K6_OUT, K6_NO_THRESHOLDS, K6_SYSTEM_TAGS, …).
var inheritedVariables = []string{
	"K6_DNS", "K6_HOSTS", "K6_INSECURE_SKIP_TLS_VERIFY", "K6_LOCAL_IPS", "K6_NO_CONNECTION_REUSE", "K6_USER_AGENT",
}

// isIgnored reports whether a variable, as NAME=value, is a variable of k6 that no runner inherits.
func isIgnored(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return strings.HasPrefix(name, "K6_") && !strings.HasPrefix(name, RemoteWritePrefix) && !slices.Contains(inheritedVariables, name)
}

// IgnoredVariables returns a sentence about the k6 variables in the environment that no runner inherits; "" if it
// has no such variable.
func IgnoredVariables() string {
	var names []string
	for _, variable := range os.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		isFixed := slices.ContainsFunc(fixedVariables, func(o string) bool { return strings.HasPrefix(o, name+"=") })
		if isIgnored(variable) && value != "" && !isFixed {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return strings.Join(names, ", ") + " in the environment: ignored, because soak sets the options of the runners"
}

var fixedVariables = []string{"K6_NO_USAGE_REPORT=true", "K6_AUTO_EXTENSION_RESOLUTION=false"}

// noConfiguration prevents k6 from reading a configuration file of the user, which could set vus and stages. On macOS it
// has no effect, because k6 searches ~/Library/Application Support there.
const noConfiguration = "XDG_CONFIG_HOME=/nonexistent"

func inheritedEnvironment() []string {
	env := slices.DeleteFunc(os.Environ(), isIgnored)
	return append(append(env, fixedVariables...), noConfiguration)
}
