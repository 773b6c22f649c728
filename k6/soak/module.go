// Package soak is the part of a run that is inside k6: the module k6/x/soak and the output `soak`. The functions hold
// and finite of the module open the streams of a run. EventSource of the module accepts a Ledger, which counts messages
// in Go. The output writes the shard.
package soak

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/js/common"
	"go.k6.io/k6/v2/js/modules"
	"go.k6.io/k6/v2/output"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/k6/sse"
)

// processRecorder is the recorder of this process, which runs one script. Module and output share it, because k6
// creates them independently.
var processRecorder = newRecorder()

func init() {
	modules.Register("k6/x/soak", &rootModule{processRecorder})
	output.RegisterExtension("soak", func(p output.Params) (output.Output, error) { return newOutput(p, processRecorder) })
}

// A rootModule is shared by all virtual users of the process.
type rootModule struct{ recorder *recorder }

func (m *rootModule) NewModuleInstance(vu modules.VU) modules.Instance {
	m.recorder.telemetry.register(vu.InitEnv().Registry)
	return &module{vu: vu, recorder: m.recorder, sse: sse.NewModule(vu), compiled: map[sobek.Value]*jsService{}}
}

// A module is the instance of k6/x/soak for one virtual user.
type module struct {
	vu          modules.VU
	recorder    *recorder
	sink        *sampleSink // of the current iteration; used on the event loop only
	sse         *sse.Module
	compiled    map[sobek.Value]*jsService // by result of soak.service
	secrets     []string                   // set by tokens
	credentials *credentials               // set by defaultCredentials
	exports     modules.Exports            // set by Exports
}

// Exports returns the exports of k6/x/soak, which index.d.ts documents. k6 calls Exports at each use of an imported
// name.
func (m *module) Exports() modules.Exports {
	if m.exports.Named == nil {
		rt := m.vu.Runtime()
		m.exports.Named = map[string]any{
			"plan":     rt.ToValue(m.plan),
			"settings": rt.ToValue(m.settings),
			"profile":  rt.ToValue(m.profile),
			"setting":  rt.ToValue(m.setting),
			"url":      rt.ToValue(m.url),
			"service":  rt.ToValue(m.service),
			"suite":    rt.ToValue(m.suite),
			"Ledger":   rt.ToValue(m.newLedger),
			"hold":     rt.ToValue(m.hold),
			"finite":   rt.ToValue(m.finite),
		}
		maps.Copy(m.exports.Named, m.sse.Exports().Named)
	}
	return m.exports
}

// requireInit throws an error if a script calls a function of the module outside the init context.
func (m *module) requireInit(function string) {
	if m.vu.State() != nil {
		sse.Must(m.vu.Runtime(), fmt.Errorf("call %s in the init context, outside any function", function))
	}
}

// applySettings sets the settings of a plan from the properties of an object in the script.
func (m *module) applySettings(p *plan.Plan, settings *sobek.Object) error {
	for _, s := range p.Settings() {
		property, _ := s.Property()
		v := settings.Get(property)
		if property == "" || v == nil || sobek.IsUndefined(v) {
			continue
		}
		if err := m.vu.Runtime().ExportTo(v, s.Value); err != nil {
			return fmt.Errorf("read the property %s of the plan: %w", property, err)
		}
		s.Normalize()
	}
	return nil
}

// environment returns a variable of __ENV, "" if it is not set.
func (m *module) environment(name string) string {
	env, ok := m.vu.Runtime().Get("__ENV").(*sobek.Object)
	if !ok {
		return ""
	}
	if v := env.Get(name); v != nil && !sobek.IsUndefined(v) {
		return v.String()
	}
	return ""
}

func (m *module) newLedger(call sobek.ConstructorCall) *sobek.Object {
	rt := m.vu.Runtime()
	if m.vu.State() == nil {
		common.Throw(rt, common.NewInitContextError("a Ledger belongs to a client; create it in the default function"))
	}
	id := call.Argument(0)
	if sobek.IsUndefined(id) || id.String() == "" {
		common.Throw(rt, errors.New("new Ledger(id): id must be the id of a client"))
	}
	l, err := m.recorder.newLedger(id.String())
	if err == nil {
		err = m.beginRun()
	}
	sse.Must(rt, err)
	return rt.NewDynamicObject(&jsLedger{observer: m.observer(l, false), rt: rt})
}

// beginRun prepares the run for its first stream, and sets the sample sink of this iteration.
func (m *module) beginRun() error {
	if m.sink == nil || m.sink.ctx != m.vu.Context() {
		m.sink = m.recorder.telemetry.sink(m.vu)
	}
	return m.recorder.begin(m.vu, m.environment("PUBLISH_TOKEN"), m.environment("RUNNER"))
}

// observer returns the observer of a stream. excluded reports whether the script acts on the stream.
func (m *module) observer(l *ledger.Ledger, excluded bool) observer {
	m.defaultCredentials() // sets the credentials of the recorder, so that findings do not show them
	o := m.recorder.observer(l, excluded)
	o.sink = m.sink
	return o
}

// tokenVariables are the environment variables with the tokens of the service.
var tokenVariables = []string{"BACKEND_TOKEN", "SUBSCRIBE_TOKEN", "PUBLISH_TOKEN"}

// defaultCredentials returns the credentials of streams whose service has no token().
func (m *module) defaultCredentials() *credentials {
	if m.credentials == nil {
		m.credentials = &credentials{secrets: m.tokens()}
		m.recorder.credentials.CompareAndSwap(nil, m.credentials)
	}
	return m.credentials
}

// token returns the value of a token variable, "" for other variables. A value with control characters is an error.
func (m *module) token(variable string) (string, error) {
	i := slices.Index(tokenVariables, variable)
	if i < 0 {
		return "", nil
	}
	value := m.tokens()[i]
	if strings.ContainsFunc(value, unicode.IsControl) {
		return "", fmt.Errorf("%s must not contain line breaks or other control characters", variable)
	}
	return value, nil
}

func (m *module) tokens() []string {
	if m.secrets == nil {
		for _, name := range tokenVariables {
			m.secrets = append(m.secrets, m.environment(name))
		}
	}
	return m.secrets
}

// observer returns the observer of a ledger. If all clients of a topic receive the same messages without numbers, the
// ledger uses the log of the topic.
func (r *recorder) observer(l *ledger.Ledger, excluded bool) observer {
	if excluded {
		r.exclude(l)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	topic := 0
	if n, ok := r.plan.Number(l.ID()); ok {
		topic = r.plan.Topic(n)
	}
	if log := r.topics[topic].log; log != nil {
		l.UseLog(log)
	}
	return observer{ledger: l, recorder: r, topic: r.topics[topic], excluded: excluded}
}
