package preflight

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
)

func TestCheckNamesInsufficientLimits(t *testing.T) {
	t.Parallel()
	enough := Machine{Files: 1 << 20, Ports: 28232, Backlog: 4096, Available: 16 << 30}
	cases := []struct {
		name           string
		edit           func(p *plan.Plan, m *Machine)
		local          bool
		errs, warnings []string
	}{
		{"sufficient limits", func(*plan.Plan, *Machine) {}, true, nil, nil},
		{"unknown limits", func(_ *plan.Plan, m *Machine) { *m = Machine{} }, true, nil, nil},
		{"a runner's files", func(_ *plan.Plan, m *Machine) { m.Files = 1131 }, false,
			[]string{"the limit on open files is 1131, but a runner with 600 connections needs 1132; raise it with `ulimit -n 1132`"}, nil},
		{"one connection", func(p *plan.Plan, m *Machine) { p.Connections, p.Runners, m.Files = 1, 1, 500 }, false,
			[]string{"a runner with 1 connection needs 533"}, nil},
		{"exactly enough files", func(_ *plan.Plan, m *Machine) { m.Files = 1132 }, false, nil, nil},
		{"nginx's files", func(_ *plan.Plan, m *Machine) { m.Files = 3423 }, true,
			[]string{"nginx with 1200 connections on each side needs 3424"}, nil},
		{"files if runners have unequal shares", func(p *plan.Plan, m *Machine) { p.Connections, p.Runners, m.Files = 1000, 3, 865 }, false,
			[]string{"a runner with 334 connections needs 866"}, nil},
		{"ports", func(p *plan.Plan, _ *Machine) { p.Connections = 28233 }, false,
			[]string{"28232 ephemeral ports are too few for 28233 connections to one address; run `sysctl -w net.ipv4.ip_local_port_range="}, nil},
		{"enough files for shared connections", func(p *plan.Plan, m *Machine) {
			p.Connections, p.ConnectionsPerVU, p.HTTPVersion, m.Files = 200_000, 1000, "2", 20_000
		}, false, nil, nil},
		{"too few files for shared connections", func(p *plan.Plan, m *Machine) {
			p.Connections, p.ConnectionsPerVU, p.HTTPVersion, m.Files = 200_000, 1000, "2", 1000
		}, false, []string{"a runner with 1000 connections needs 1532"}, nil},
		{"memory", func(_ *plan.Plan, m *Machine) { m.Available = 100 << 20 }, false, nil,
			[]string{"100 MiB of memory is available, but the run may use 617 MiB; raise CONNECTIONS_PER_VU"}},
		{"memory of nginx and backend", func(_ *plan.Plan, m *Machine) { m.Available = 100 << 20 }, true, nil, []string{"the run may use 635 MiB"}},
		{"memory of the runners alone", func(p *plan.Plan, m *Machine) { p.Runners, p.Connections, m.Available = 1000, 1000, 20_000<<20 }, false,
			[]string{"1000 runners need at least 32000 MiB of memory, but 20000 MiB is available; lower RUNNERS"}, nil},
		{"memory of shared virtual users", func(p *plan.Plan, m *Machine) { p.ConnectionsPerVU, m.Available = 100, 200<<20 }, false, nil, nil},
		{"the accept queue", func(_ *plan.Plan, m *Machine) { m.Backlog = 128 }, true, nil,
			[]string{"the accept queue is limited to 128, but 1200 clients connect at once"}},
		{"the accept queue of another machine", func(_ *plan.Plan, m *Machine) { m.Backlog = 128 }, false, nil, nil},
		{"a short accept queue for few clients", func(p *plan.Plan, m *Machine) { p.Connections, m.Backlog = 100, 128 }, true, nil, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, m := plan.Default(), enough
			c.edit(&p, &m)
			errs, warnings := Check(p, m, Services{Count: 1, Local: c.local, Proxied: c.local})
			requireSentences(t, c.errs, errs)
			requireSentences(t, c.warnings, warnings)
		})
	}
}

func requireSentences(t *testing.T, want, got []string) {
	t.Helper()
	require.Len(t, got, len(want), "%q", got)
	for i, text := range want {
		require.Contains(t, got[i], text)
	}
}

func TestReadReturnsLimitsOfThisMachine(t *testing.T) {
	t.Parallel()
	m := Read()
	require.NotZero(t, m.Files)
	require.NotZero(t, m.Ports)
	require.NotZero(t, m.Backlog)
	require.Greater(t, m.Available, uint64(1<<20))
}

func TestSeveralServicesShareTheLoad(t *testing.T) {
	t.Parallel()
	p := plan.Default()
	p.Connections, p.Runners, p.ConnectionsPerVU = 100_000, 6, 166
	m := Machine{Files: 20_000, Ports: 28_232, Backlog: 4096, Available: 16 << 30}
	errs, _ := Check(p, m, Services{Count: 6, Local: true})
	require.Empty(t, errs)
	errs, _ = Check(p, m, Services{Count: 3, Local: true})
	require.Len(t, errs, 2, "%q", errs)
	require.Contains(t, errs[0], "a backend with 33366 connections needs 33878")
	require.Contains(t, errs[1], "28232 ephemeral ports are too few for 33366 connections to one address")
	errs, _ = Check(p, m, Services{Count: 6, Local: true, Proxied: true})
	require.Len(t, errs, 1, "%q", errs)
	require.Contains(t, errs[0], "nginx with 16766 connections on each side")
}

func TestUsersCheckNamesInsufficientLimits(t *testing.T) {
	t.Parallel()
	enough := Machine{Files: 1 << 20, Ports: 28_232, Backlog: 4096, Available: 16 << 30}
	base := Users{VUs: 16, Runners: 1, Connections: 10_000, Sources: 16, Local: true}

	for name, c := range map[string]struct {
		edit           func(*Users, *Machine)
		errs, warnings []string
	}{
		"sufficient limits":    {func(*Users, *Machine) {}, nil, nil},
		"unknown limits":       {func(_ *Users, m *Machine) { *m = Machine{} }, nil, nil},
		"exactly enough files": {func(u *Users, m *Machine) { u.Connections, m.Files = 19_488, 20_000 }, nil, nil},
		"files of the runner":  {func(u *Users, m *Machine) { u.Local, u.Connections, m.Files = false, 19_489, 20_000 }, []string{"the limit on open files is 20000, but a runner with 19489 open connections needs 20001; raise it with `ulimit -n 20001`"}, nil},
		"files of the service": {func(u *Users, m *Machine) { u.Runners, u.Connections, m.Files = 2, 30_000, 20_000 },
			[]string{"the service with 30000 open connections needs 30512"}, nil},
		"files of nginx": {func(u *Users, m *Machine) { u.Proxied, m.Files = true, 20_000 }, []string{"nginx with 10000 open connections on each side needs 21024"}, nil},
		"a connection per user": {func(u *Users, m *Machine) { *u = Users{VUs: 1000, Runners: 2}; m.Files = 1011 },
			[]string{"a runner with 500 open connections needs 1012"}, nil},
		"ports of one address":         {func(u *Users, _ *Machine) { u.Sources, u.Connections = 1, 28_233 }, []string{"28232 ephemeral ports are too few for 28233 open connections of a runner to one address"}, nil},
		"ports of sixteen addresses":   {func(u *Users, _ *Machine) { u.Connections = 28_233 }, nil, nil},
		"unlimited addresses":          {func(u *Users, _ *Machine) { u.Sources, u.Connections = 0, 28_233 }, nil, nil},
		"memory of open connections":   {func(_ *Users, m *Machine) { m.Available = 100 << 20 }, []string{"100 MiB of memory is available, but the run may use 851 MiB; lower the number"}, nil},
		"fewer usable cores":           {func(u *Users, m *Machine) { u.Handshakes, m.Cores, m.Procs = true, 8, 2 }, nil, []string{"at most 2 of 8 cores; unset GOMAXPROCS"}},
		"one core for both ends":       {func(u *Users, m *Machine) { u.Handshakes, m.Cores, m.Procs = true, 1, 1 }, nil, []string{"share one core"}},
		"requests on fewer cores":      {func(_ *Users, m *Machine) { m.Cores, m.Procs = 8, 2 }, nil, nil},
		"memory of virtual users only": {func(u *Users, m *Machine) { *u, m.Available = Users{VUs: 2000, Runners: 1}, 100<<20 }, nil, []string{"the run may use 845 MiB; lower the number"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, m := base, enough
			c.edit(&u, &m)
			errs, warnings := u.Check(m)
			requireSentences(t, c.errs, errs)
			requireSentences(t, c.warnings, warnings)
		})
	}
}
