package soak

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/js/common"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/k6/sse"
)

// plan implements soak.plan(explicit). It returns the checked settings of a run with the noop protocol.
func (m *module) plan(explicit sobek.Value) *sobek.Object {
	return m.settingsOf("soak.plan", nil, explicit)
}

// settings implements soak.settings(service, explicit). It returns the checked settings of a run with a service.
func (m *module) settings(serviceObject, explicit sobek.Value) *sobek.Object {
	s := m.compiled[serviceObject]
	if s == nil {
		common.Throw(m.vu.Runtime(), errors.New("soak.settings: service must be a result of soak.service"))
	}
	return m.settingsOf("soak.settings", s, explicit)
}

// settingsOf stores the plan of a service and returns its settings. s is nil for soak.plan. function is the name in the
// script, for errors.
func (m *module) settingsOf(function string, s *jsService, explicit sobek.Value) *sobek.Object {
	rt := m.vu.Runtime()
	m.requireInit(function)
	p, err := m.planOf(s, explicit)
	if err == nil {
		err = m.recorder.setPlan(p)
	}
	sse.Must(rt, err)
	if s == nil {
		s = m.recorder.defaultService(m)
	}
	return m.settingsObject(s, &p)
}

// planOf returns the plan of the environment. Properties of explicit have precedence. The plan has neither RunID nor
// Suite, which a shard stores in other fields.
func (m *module) planOf(s *jsService, explicit sobek.Value) (p plan.Plan, err error) {
	source, err := plan.SourceOf(m.environment)
	if err == nil {
		p, err = source.Plan()
	}
	p.RunID, p.Suite = "", ""
	if err == nil && !common.IsNullish(explicit) {
		err = m.applySettings(&p, explicit.ToObject(m.vu.Runtime()))
	}
	if err != nil {
		return p, err
	}
	if strings.TrimSpace(p.BackendURL) == "" {
		return p, errors.New("BACKEND_URL is missing; name the service to test, such as --env BACKEND_URL=http://127.0.0.1:8080")
	}
	if p.BackendURL, err = plan.NormalURL("BACKEND_URL", p.BackendURL); err != nil || s == nil {
		return p, err
	}
	return p, cmp.Or(s.checkTokenTTL(p.TokenTTL), s.Complete(&p))
}

// settingsObject returns the properties of a checked plan. s is nil if the script calls soak.plan but declares a
// service.
func (m *module) settingsObject(s *jsService, p *plan.Plan) *sobek.Object {
	out := map[string]any{}
	for _, setting := range p.Settings() {
		if property, _ := setting.Property(); property != "" {
			out[property] = setting.Get()
		}
	}
	complete := *p
	complete.Connections = cmp.Or(p.Connections, plan.Default().Connections)
	out["endTimeout"] = p.EndTimeout().Seconds()
	out["teardown"] = math.Ceil(complete.Teardown().Seconds())
	if s != nil {
		out["idleTimeout"] = s.IdleTimeout(p).Milliseconds()
	}
	return m.vu.Runtime().ToValue(out).ToObject(m.vu.Runtime())
}

// profile implements soak.profile(suite, {full, smoke}). It returns the settings that only the script of the suite
// reads. PROFILE chooses the defaults.
func (m *module) profile(suite string, profiles map[string]map[string]any) *sobek.Object {
	rt := m.vu.Runtime()
	name, values, err := m.chosenProfile(suite, profiles)
	runners, runnersErr := strconv.Atoi(m.setting("RUNNERS"))
	if err == nil && runnersErr != nil {
		err = fmt.Errorf("RUNNERS must be a whole number, got %q", m.setting("RUNNERS"))
	}
	sse.Must(rt, err)
	suiteSettings, parameters, out := rt.NewObject(), rt.NewObject(), rt.NewObject()
	for key, value := range values {
		text := fmt.Sprint(value)
		switch v := value.(type) {
		case float64:
			text = strconv.FormatFloat(v, 'f', -1, 64)
		case []any:
			text = strings.Trim(strings.ReplaceAll(text, " ", ","), "[]")
			value = rt.NewArray(v...)
		}
		err = errors.Join(err, suiteSettings.Set(key, value), parameters.Set(key, text))
	}
	for key, value := range map[string]any{"name": name, "values": suiteSettings, "parameters": parameters, "runners": runners} {
		err = errors.Join(err, out.Set(key, value))
	}
	sse.Must(rt, err)
	return out
}

// chosenProfile returns the name of the chosen profile, and its values merged with the settings of the environment.
func (m *module) chosenProfile(suite string, profiles map[string]map[string]any) (name string, values map[string]any, err error) {
	source, err := plan.SourceOf(m.environment)
	if err != nil {
		return "", nil, err
	}
	name = cmp.Or(source.Setting("PROFILE"), "full")
	values, ok := profiles[name]
	if !ok {
		return name, nil, fmt.Errorf("PROFILE must be smoke or full, got %q", name)
	}
	rows := plan.ScriptSettings(suite)
	for key := range values {
		i := slices.IndexFunc(rows, func(s plan.Setting) bool { return s.Name == key })
		if i < 0 {
			return name, nil, fmt.Errorf("%s is not a setting of the suite %s; read variables of your own with setting()", key, suite)
		}
		if text := source.Setting(key); text != "" {
			if values[key], err = rows[i].Parse(text); err != nil {
				return name, nil, err //nolint:wrapcheck // it names the setting
			}
		}
	}
	return name, values, nil
}

// setting implements soak.setting(name). It returns the text of a setting of the script or of the plan, "" for none.
func (m *module) setting(name string) string {
	source, err := plan.SourceOf(m.environment)
	sse.Must(m.vu.Runtime(), err)
	return source.Text(name)
}

// url implements soak.url(name). It returns the URL that a setting contains, in its normal form.
func (m *module) url(name string) string {
	text := m.setting(name)
	if strings.TrimSpace(text) == "" {
		common.Throw(m.vu.Runtime(), fmt.Errorf("%s is missing; name the service to test, such as --env %[1]s=http://127.0.0.1:8080", name))
	}
	normal, err := plan.NormalURL(name, text)
	sse.Must(m.vu.Runtime(), err)
	return normal
}
