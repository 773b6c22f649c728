// Package module evaluates the modules of service descriptions with the JavaScript engine of k6.
package module

import (
	"errors"
	"testing"

	"github.com/grafana/sobek"
	"github.com/stretchr/testify/require"
)

// Evaluate evaluates a JavaScript module without imports. It returns the default export as JSON, in which each function
// is `true`.
func Evaluate(t testing.TB, text string) []byte {
	t.Helper()
	runtime := sobek.New()
	require.NoError(t, runtime.Set("__ENV", map[string]string{}))
	module, err := sobek.ParseModule("module.js", text, func(any, string) (sobek.ModuleRecord, error) {
		return nil, errors.New("module.Evaluate does not support imports")
	})
	require.NoError(t, err, text)
	require.NoError(t, module.Link())
	promise := module.Evaluate(runtime)
	require.Equal(t, sobek.PromiseStateFulfilled, promise.State(), "%v", promise.Result())
	require.NoError(t, runtime.Set("description", runtime.GetModuleInstance(module).GetBindingValue("default")))
	json, err := runtime.RunString(`JSON.stringify(description, (_, v) => (typeof v === 'function' ? true : v))`)
	require.NoError(t, err)
	return []byte(json.String())
}
