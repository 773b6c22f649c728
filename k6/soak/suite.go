package soak

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/js/common"

	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/k6/sse"
)

func (m *module) suite(v sobek.Value) {
	rt := m.vu.Runtime()
	m.requireInit("soak.suite")
	var s shard.Suite
	if err := rt.ExportTo(v, &s); err != nil {
		common.Throw(rt, fmt.Errorf("soak.suite: %w", err))
	}
	sse.Must(rt, m.recorder.setSuite(s))
}

// setSuite stores the suite of the script. Each virtual user loads the script and must declare the same suite.
func (r *recorder) setSuite(s shard.Suite) error {
	if s.Name == "" {
		return errors.New("soak.suite: name is missing")
	}
	names := map[string]bool{}
	for _, st := range s.Stages {
		if st.Name == "" || names[st.Name] {
			return fmt.Errorf("soak.suite: stages must have unique names, got %q; remove repeated numbers, such as 20,20, from the settings", st.Name)
		}
		names[st.Name] = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.suite != nil && !reflect.DeepEqual(*r.suite, s) {
		return errors.New("soak.suite was called with two different suites")
	}
	r.suite = &s
	return nil
}

// declaredSuite returns the suite that the script declares, nil for a soak.
func (r *recorder) declaredSuite() *shard.Suite {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.suite
}
