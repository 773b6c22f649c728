package soak

import (
	"cmp"
	"errors"
	"math"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/js/common"

	"github.com/sse-soak/sse-soak/internal/plan"
)

// settings is soak.settings(service, stated): the settings of a run, checked, with what follows from them and from the description.
// Properties of stated take precedence over the environment.
func (m *module) settings(described, stated sobek.Value) *sobek.Object {
	rt := m.vu.Runtime()
	out, err := m.completeSettings(described, stated)
	if err != nil {
		common.Throw(rt, err)
	}
	return out
}

func (m *module) completeSettings(described, stated sobek.Value) (*sobek.Object, error) {
	s := m.compiled[described]
	if s == nil {
		return nil, errors.New("soak.settings: the service must be the result of soak.service")
	}
	p, err := plan.OfScript(m.environment)
	if err == nil && !common.IsNullish(stated) {
		err = m.state(&p, stated.ToObject(m.vu.Runtime()))
	}
	if err == nil {
		err = p.CheckScript()
	}
	if err == nil {
		err = s.checkTokenTTL(p.TokenTTL)
	}
	if err == nil {
		err = s.Complete(&p)
	}
	if err != nil {
		return nil, err
	}
	return m.settingsObject(s, &p)
}

// settingsObject returns the properties of a checked plan.
func (m *module) settingsObject(s *jsService, p *plan.Plan) (*sobek.Object, error) {
	out := m.vu.Runtime().NewObject()
	for _, one := range p.Settings() {
		if property, _ := one.Property(); property != "" {
			if err := out.Set(property, one.Get()); err != nil {
				return nil, err
			}
		}
	}
	whole := *p
	whole.Connections = cmp.Or(p.Connections, plan.Default().Connections)
	for property, value := range map[string]any{
		"endTimeout":  p.EndTimeout().Seconds(),
		"idleTimeout": s.IdleTimeout(p).Milliseconds(),
		"teardown":    math.Ceil(whole.Teardown().Seconds()),
	} {
		if err := out.Set(property, value); err != nil {
			return nil, err
		}
	}
	return out, nil
}
