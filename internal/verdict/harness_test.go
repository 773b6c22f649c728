package verdict

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/shard"
)

var compiledSchema = sync.OnceValue(func() *jsonschema.Schema { return jsonschema.NewCompiler().MustCompile(schemaFile) })

func mustFitSchema(v *Verdict) *Verdict {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	file, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err == nil {
		err = compiledSchema().Validate(file)
	}
	if err != nil {
		panic(err)
	}
	return v
}

// judgeSoak judges streams as judgeStreams does. It panics if the verdict does not fit the schema.
func judgeSoak(m *shard.Merged, server ServerLedger, e Evidence) *Verdict {
	return mustFitSchema(judgeStreams(m, server, e))
}

// judgeStreams judges streams that were planned to be open for the whole run, by all checks of such streams.
func judgeStreams(m *shard.Merged, server ServerLedger, e Evidence) *Verdict {
	e.Rounds, e.Server = []*shard.Merged{m}, server
	s := StreamsOf(m, server, e.OneHost)
	return Judge(&e, Assessment{
		Streams: s, Warnings: s.Warnings, Passed: s.PassSentences(), Doubts: []Check{s.UndetectableLossCheck()},
		Checks: slices.Concat(s.CutChecks(), s.FaultChecks(), s.OpenTimeChecks(), []Check{s.GeneratorCheck()}, s.AgreementChecks()),
	})
}

// requireOutcome compares the outcome of a verdict, and returns the verdict. name identifies the case of a table.
func requireOutcome(t *testing.T, want Outcome, v *Verdict, name ...any) *Verdict {
	t.Helper()
	require.Equal(t, want, v.Verdict, "%v: %q", name, v.Reasons)
	return v
}

func check(t *testing.T, v *Verdict, name string) Check {
	t.Helper()
	for _, c := range v.Checks {
		if c.Name == name {
			return c
		}
	}
	require.Fail(t, "the verdict has no such check", name)
	return Check{}
}
