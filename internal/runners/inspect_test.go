package runners

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheRefusalOfAScript(t *testing.T) {
	t.Parallel()
	for log, want := range map[string]string{
		`{"hint":"script exception","level":"error","msg":"Error: STAGES is \"x\": it must be a number.\n\tat parsed (file:///x.js:1:2(3))\n"}`: `STAGES is "x": it must be a number.`,
		"{\"level\":\"warning\",\"msg\":\"w\"}\n{\"level\":\"error\",\"msg\":\"GoError: the stage \\\"a\\\" is there twice\\n\\tat y\"}":        `the stage "a" is there twice`,
		`{"level":"error","msg":"GoError: name is missing\nconnect is missing\n\tat x\n\tat y"}`:                                                "name is missing\nconnect is missing",
		`{"level":"error","msg":"Error: it has no trace\n"}`:                                                                                    "it has no trace",
		"": "", "not JSON\n": "",
	} {
		require.Equal(t, want, refusal([]byte(log)))
	}
}
