package preflight

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
)

func TestEachLimitHasAFinding(t *testing.T) {
	t.Parallel()
	p := plan.Default()
	services := Services{Count: 1, Local: true, Proxied: true}
	enough := Machine{Files: 1 << 20, Ports: 28232, Backlog: 4096, Available: 16 << 30}
	for name, c := range map[string]struct {
		edit func(m *Machine)
		row  int
		want State
		text string
	}{
		"enough":            {func(*Machine) {}, 0, OK, "1048576 per process"},
		"too few files":     {func(m *Machine) { m.Files = 1000 }, 0, Broken, "`ulimit -n 3424`"},
		"too few ports":     {func(m *Machine) { m.Ports = 1000 }, 1, Broken, "`sysctl -w net.ipv4.ip_local_port_range="},
		"a short queue":     {func(m *Machine) { m.Backlog = 128 }, 2, Warning, "`sysctl -w net.core.somaxconn=4096`"},
		"little memory":     {func(m *Machine) { m.Available = 100 << 20 }, 3, Warning, "100 MiB of memory is available"},
		"no memory":         {func(m *Machine) { m.Available = 1 << 20 }, 3, Broken, "2 runners need at least 64 MiB of memory"},
		"a core per runner": {func(m *Machine) { m.Available, m.Cores = 1<<20, 2 }, 3, Warning, "1 MiB of memory is available"},
		"nothing is known":  {func(m *Machine) { *m = Machine{} }, 3, Absent, "unknown on this system"},
	} {
		m := enough
		c.edit(&m)
		found := limits(p, m, services)
		require.Len(t, found, 4)
		require.Equal(t, c.want, found[c.row].State, name)
		require.Contains(t, found[c.row].Result, c.text, name)
		require.Equal(t, c.want != Broken, CanStart(found), name)
		if name == "nothing is known" {
			continue
		}
		for i, f := range found {
			if i != c.row {
				require.Equal(t, OK, f.State, "%s: %s", name, f.Result)
			}
		}
	}
}

func TestCheckReportsTheVersionOrTheReason(t *testing.T) {
	t.Parallel()
	script := func(text string) []string {
		path := filepath.Join(t.TempDir(), "program")
		require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755))
		return []string{path}
	}
	for name, c := range map[string]struct {
		program Program
		want    State
		found   string
		remedy  string
	}{
		"a version":                {Program{Names: script("echo version 7; echo more; echo a warning >&2")}, OK, "version 7", ""},
		"on standard error":        {Program{Names: script("echo version 7 >&2")}, OK, "version 7", ""},
		"missing":                  {Program{Names: []string{"/nowhere/program"}, Consequence: "no cluster", Remedy: "install it"}, Absent, "not found: no cluster", "install it"},
		"missing and required":     {Program{Names: []string{"/nowhere/program"}, Consequence: "nothing runs", Remedy: "make build", Needed: true}, Broken, "not found: nothing runs", "make build"},
		"failed with a message":    {Program{Names: script("echo what; echo first >&2; echo cannot connect >&2; exit 1"), Consequence: "no stack", Remedy: "install it", Start: "start it"}, Absent, "failed (cannot connect): no stack", "start it"},
		"failed without a message": {Program{Names: script("exit 3"), Consequence: "nothing runs", Remedy: "make build", Needed: true}, Broken, "failed (exit status 3): nothing runs", "make build"},
	} {
		c.program.Name = "no such program anywhere"
		f := c.program.check(t.Context())
		require.Equal(t, c.want, f.State, name)
		require.Contains(t, f.Result, c.found, name)
		require.Equal(t, c.remedy, f.Remedy, name)
	}
}

func TestEachAbsentProgramHasARemedy(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // no program runs
	for _, f := range Inspect(ctx, plan.Default(), Services{Count: 1}, nil) {
		if f.Group == "programs" && f.State != OK {
			require.NotEmpty(t, f.Remedy, f.Name)
		}
	}
}
