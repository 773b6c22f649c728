package runners

import (
	"os"
	"slices"
	"strings"
)

// inheritable are k6's own variables that a runner takes from our environment: how it reaches the
// service, and where it sends metrics. Any other could change the load (K6_VUS, K6_STAGES, K6_RPS,
// …) or what is kept of it (K6_OUT, K6_NO_THRESHOLDS, K6_SYSTEM_TAGS, …), and is left out.
var inheritable = []string{"K6_DNS", "K6_HOSTS", "K6_INSECURE_SKIP_TLS_VERIFY", "K6_LOCAL_IPS", "K6_USER_AGENT"}

func ignored(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return strings.HasPrefix(name, "K6_") && !strings.HasPrefix(name, RemoteWritePrefix) && !slices.Contains(inheritable, name)
}

// Ignored lists the variables of k6 in our environment that no runner gets, "" if there are none.
func Ignored() string {
	var names []string
	for _, variable := range os.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		set := slices.ContainsFunc(ours, func(o string) bool { return strings.HasPrefix(o, name+"=") })
		if ignored(variable) && value != "" && !set {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return strings.Join(names, ", ") + " in the environment: ignored, because the plan sets them for the runners"
}

// ours are those of k6's variables that every k6 of a soak is given. There is no configuration file
// either: one in the user's home may set vus and stages too.
var ours = []string{"K6_NO_USAGE_REPORT=true", "K6_AUTO_EXTENSION_RESOLUTION=false"}

const noConfiguration = "XDG_CONFIG_HOME=/nonexistent"

// inherited is our environment as a k6 gets it.
func inherited() []string {
	env := slices.DeleteFunc(os.Environ(), ignored)
	return append(append(env, ours...), noConfiguration)
}
