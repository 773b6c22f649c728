package soak

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.k6.io/k6/v2/js/modulestest"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/metrics"
)

const planJS = `plan({testid: "t", connections: 2, seconds: 3600, noopInterval: 15, runners: 1, connectionsPerVU: 1,
	backendUrl: "http://h", prefix: "d-", lateMs: 1000, reconnect: false});`

func newVU(t *testing.T) (*modulestest.Runtime, *recorder) {
	t.Helper()
	r := newRecorder()
	return newVUOf(t, r), r
}

// newVUOf returns a virtual user of a process with the given recorder.
func newVUOf(t *testing.T, r *recorder) *modulestest.Runtime {
	t.Helper()
	rt := modulestest.NewRuntime(t)
	instance := (&rootModule{r}).NewModuleInstance(rt.VU)
	for name, value := range instance.Exports().Named {
		require.NoError(t, rt.VU.Runtime().Set(name, value))
	}
	require.NoError(t, rt.VU.Runtime().Set("instance", instance))
	return rt
}

// serviceOf returns the only service that a script has compiled.
func serviceOf(t *testing.T, rt *modulestest.Runtime) *jsService {
	t.Helper()
	m, ok := rt.VU.Runtime().Get("instance").Export().(*module)
	require.True(t, ok)
	require.Len(t, m.compiled, 1)
	for _, s := range m.compiled {
		return s
	}
	return nil
}

func js(t *testing.T, rt *modulestest.Runtime, script string) string {
	t.Helper()
	v, err := rt.VU.Runtime().RunString(script)
	require.NoError(t, err)
	return v.String()
}

func TestPlanIsCheckedAndStored(t *testing.T) {
	t.Parallel()
	rt, r := newVU(t)
	js(t, rt, planJS)
	want := newPlan()
	require.Equal(t, want, r.plan)
	js(t, rt, strings.Replace(planJS, "{", "{acceptEncoding: 'none', ", 1)) // an equal plan: none is the default
	_, err := rt.VU.Runtime().RunString(strings.Replace(planJS, "{", "{acceptEncoding: 'gzip', ", 1))
	require.ErrorContains(t, err, "AcceptEncoding:gzip")
	_, err = rt.VU.Runtime().RunString(`plan({connections: 1})`)
	require.ErrorContains(t, err, "BACKEND_URL is missing")
	_, err = rt.VU.Runtime().RunString(`new Ledger("d-0")`)
	require.ErrorContains(t, err, "create it in the default function")
	rt.MoveToVUContext(&lib.State{})
	_, err = rt.VU.Runtime().RunString(planJS)
	require.ErrorContains(t, err, "call soak.plan in the init context")
}

func TestLedgerNeedsIDAndPlan(t *testing.T) {
	t.Parallel()
	rt, _ := newVU(t)
	rt.MoveToVUContext(&lib.State{})
	for script, want := range map[string]string{
		`new Ledger()`: "id must be the id of a client", `new Ledger("")`: "id must be the id of a client", `new Ledger("d-0")`: "call soak.plan or soak.settings in the init context first",
	} {
		_, err := rt.VU.Runtime().RunString(script)
		require.ErrorContains(t, err, want)
	}
}

func TestLedgerAcceptsOneSource(t *testing.T) {
	t.Parallel()
	h := holderOf(t, "http://127.0.0.1:1", "")
	require.True(t, h.run(t, `(async () => {
		const ledger = new Ledger("d-0");
		const open = () => { const s = new EventSource(url, { ledger }); s.close(); return s.readyState; };
		globalThis.state = open();
		try { open(); } catch (e) { globalThis.thrown = e; }
	})()`))
	require.Equal(t, "2 TypeError EventSource: option ledger: this Ledger already has a source; create a Ledger for each source", js(t, h.Runtime, `[state, thrown.name, thrown.message].join(" ")`))
}

func TestScriptCanReadItsLedger(t *testing.T) {
	t.Parallel()
	rt, r := newVU(t)
	js(t, rt, planJS)
	rt.MoveToVUContext(&lib.State{Samples: make(chan metrics.SampleContainer, 100)})
	require.Equal(t, "d-0 planned 0", js(t, rt, `var l = new Ledger("d-0"); [l.id, l.state, l.received].join(" ")`))

	exported := rt.VU.Runtime().Get("l").Export()
	observer, ok := exported.(*jsLedger)
	require.True(t, ok, "EventSource must accept the ledger: %T", exported)
	at := r.start.Add(time.Second)
	observer.connecting(at)
	observer.openStream(at.Add(7 * time.Millisecond))
	at = at.Add(7 * time.Millisecond)
	observer.event(at.Add(15*time.Second), event("1", "0", ""))
	observer.event(at.Add(45*time.Second), event("3", "0", ""))
	observer.event(at.Add(45*time.Second), event("3", "0", ""))
	require.Equal(t, "open 3 2 1 1 0 0", js(t, rt, `[l.state, l.expected, l.received, l.missed, l.duplicated, l.reordered, l.corrupted].join(" ")`))
	require.Equal(t, "d-0 open: expected 3, received 2, missed 1, duplicated 1, reordered 0, corrupted 0", js(t, rt, "`${l}`"))

	require.Equal(t, "2", js(t, rt, `l.received = 99; delete l.received; String(l.received)`), "a script must not change counts")
	_, err := rt.VU.Runtime().RunString(`"use strict"; l.received = 99`)
	require.Error(t, err)
	require.Equal(t, "true true false undefined", js(t, rt, `["state" in l, "toString" in l, "other" in l, l.other].join(" ").replace(/ $/, " undefined")`))
	require.Equal(t, fmt.Sprint(len(ledgerValues)), js(t, rt, `String(Object.keys(l).length)`))
	require.Equal(t, "d-0", js(t, rt, `JSON.parse(JSON.stringify(l)).id`))
}

func TestVirtualUsersShareOneRecorder(t *testing.T) {
	t.Parallel()
	r := newRecorder()
	for i := range 2 {
		rt := newVUOf(t, r)
		js(t, rt, planJS)
		rt.MoveToVUContext(&lib.State{})
		js(t, rt, fmt.Sprintf(`new Ledger("d-%d"); ""`, i))
	}
	require.Len(t, shardOf(r).Connections, 2)
}

// A setting of the environment reaches the shard if the script does not set it.
func TestPlanMergesEnvironmentAndScript(t *testing.T) {
	t.Parallel()
	rt, r := newVU(t)
	js(t, rt, `globalThis.__ENV = { MAX_LATE: "7", SECONDS: "99", SOAK_RUN_ID: "x" }; ""`)
	js(t, rt, planJS)
	require.Equal(t, 7, shardOf(r).Plan.MaxLate)
	require.NotEqual(t, 99, shardOf(r).Plan.Seconds, "settings of the script must have precedence")
	require.Empty(t, shardOf(r).Plan.RunID)

	rt, _ = newVU(t)
	js(t, rt, `globalThis.__ENV = { MAX_LATE: "few" }; ""`)
	_, err := rt.VU.Runtime().RunString(planJS)
	require.ErrorContains(t, err, `MAX_LATE must be a whole number, got "few"`)
}
