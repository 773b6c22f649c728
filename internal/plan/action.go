package plan

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// An Action is a command that runs at a planned time during the run (--at); see docs/suites.md.
type Action struct {
	Name    string        `json:"name"`
	At      time.Duration `json:"at_ns"` // since the runners were started
	Command string        `json:"command"`
}

// actionName matches the name of an action, which is also the value of a tag.
var actionName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$`)

// ParseActions parses the values of --at: TIME [NAME]: COMMAND. The default name of an action is action-1, action-2 and
// so on, by its position in lines.
func ParseActions(lines []string) (out []Action, err error) {
	names := map[string]bool{}
	for i, line := range lines {
		a, err := parseAction(line)
		if err != nil {
			return nil, err
		}
		if a.Name == "" {
			a.Name = fmt.Sprintf("action-%d", i+1)
		}
		if names[a.Name] {
			return nil, fmt.Errorf("--at must have unique names, got %q and another action named %s", line, a.Name)
		}
		names[a.Name] = true
		out = append(out, a)
	}
	return out, nil
}

func parseAction(line string) (a Action, err error) {
	head, command, ok := strings.Cut(line, ":")
	words := strings.Fields(head)
	a.Command = strings.TrimSpace(command)
	if !ok || len(words) < 1 || len(words) > 2 || a.Command == "" {
		return a, fmt.Errorf("--at must be TIME [NAME]: COMMAND, such as '60s deploy: systemctl restart hub', got %q", line)
	}
	if a.At, err = time.ParseDuration(words[0]); err != nil || a.At < 0 {
		return a, fmt.Errorf("--at must begin with a time after the start, such as 60s, 1m30s or 2h, got %q in %q", words[0], line)
	}
	if len(words) == 2 {
		if a.Name = words[1]; !actionName.MatchString(a.Name) {
			return a, fmt.Errorf("--at must have a name of up to 40 letters, digits, '.', '_' and '-' that starts with a letter or a digit, got %q in %q",
				a.Name, line)
		}
	}
	return a, nil
}

// AllVariables is the value of AT_ENV that passes the whole environment to actions.
const AllVariables = "all"

// variableNames matches names of environment variables, separated by commas. It also matches AllVariables.
var variableNames = regexp.MustCompile(`^[A-Za-z_]\w*(?:,[A-Za-z_]\w*)*$`)

// CheckVariables returns an error if names is not a valid value of AT_ENV. "" is valid.
func CheckVariables(names string) error {
	if names != "" && !variableNames.MatchString(names) {
		return fmt.Errorf("AT_ENV must be comma-separated names of variables or %s, got %q", AllVariables, names)
	}
	return nil
}
