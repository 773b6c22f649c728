package runners

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/plan"
)

// Requirements are the resources and the service that a script declares.
type Requirements struct {
	VUs         int           `json:"-"` // maximum number of concurrent virtual users of all runners
	Connections int           // declared number of concurrent connections of all runners; 0: one per virtual user
	Duration    time.Duration `json:"-"` // maximum duration of the runners
	Seconds     int           // SECONDS of the declared plan of streams; 0: no declared plan
	// Service is the description of the service, as internal/service reads it; nil if the script names none.
	Service json.RawMessage
	// CustomToken reports whether token() returns a token other than SUBSCRIBE_TOKEN.
	CustomToken bool
}

// A SettingsError reports that a script rejects its settings, and why, or that the script was not loaded in time.
type SettingsError struct{ Sentence string }

func (e SettingsError) Error() string { return e.Sentence }

var inspectTimeout = 30 * time.Second

// Inspect loads a script without running it, so that invalid settings are reported before any runner starts. env has
// variables in addition to the environment of soak and the variables of the document.
func Inspect(ctx context.Context, k6, script string, d plan.Document, env map[string]string) (r Requirements, err error) {
	ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, k6, "inspect", "--execution-requirements", "--include-system-env-vars", "--log-format", "json", script) // #nosec G204 -- k6 with a script of the user, without a shell
	cmd.Env = withVariables(inheritedEnvironment(), d.Variables(), env)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return r, SettingsError{fmt.Sprintf("%s was not loaded within %s; check the script and the service description for endless loops", script, inspectTimeout)}
	case ctx.Err() != nil:
		return r, ctx.Err() //nolint:wrapcheck // the error of the caller's context
	}
	if err != nil {
		if sentence := exceptionText(stderr.Bytes()); sentence != "" {
			return r, SettingsError{sentence}
		}
		return r, errors.Join(fmt.Errorf("load %s: %w", script, err), errors.New(strings.TrimSpace(stderr.String())))
	}
	var answer struct {
		TotalDuration string
		MaxVUs        int
		Ext           struct{ Soak Requirements }
	}
	if err := json.Unmarshal(out, &answer); err != nil {
		return r, fmt.Errorf("load %s: parse the output of k6: %w", script, err)
	}
	r = answer.Ext.Soak
	r.VUs = answer.MaxVUs
	if r.Duration, err = time.ParseDuration(answer.TotalDuration); err != nil {
		return r, fmt.Errorf("load %s: %w", script, err)
	}
	return r, nil
}

// exceptionText returns the text of an exception in k6's log, without its stack trace, or "". The text is one sentence,
// or a line for each mistake in the description of a service.
func exceptionText(log []byte) string {
	for line := range bytes.Lines(log) {
		var entry struct{ Level, Msg string }
		if json.Unmarshal(line, &entry) != nil || entry.Level != "error" {
			continue
		}
		sentence, _, _ := strings.Cut(entry.Msg, "\n\tat ")
		for _, prefix := range []string{"Error: ", "GoError: "} {
			sentence = strings.TrimPrefix(sentence, prefix)
		}
		return strings.TrimSpace(sentence)
	}
	return ""
}
