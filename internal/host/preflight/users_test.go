package preflight

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUsers(t *testing.T) {
	t.Parallel()
	enough := Machine{Files: 1 << 20, Ports: 28_232, Backlog: 4096, Available: 16 << 30}
	base := Users{VUs: 16, Runners: 1, Connections: 10_000, Sources: 16, Local: true}
	with := func(edit func(*Users, *Machine)) (Users, Machine) {
		u, m := base, enough
		edit(&u, &m)
		return u, m
	}
	for name, c := range map[string]struct {
		edit           func(*Users, *Machine)
		errs, warnings []string
	}{
		"enough of all":        {func(*Users, *Machine) {}, nil, nil},
		"nothing is known":     {func(_ *Users, m *Machine) { *m = Machine{} }, nil, nil},
		"the maximum of files": {func(u *Users, m *Machine) { u.Connections, m.Files = 19_488, 20_000 }, nil, nil},
		"files of the runner":  {func(u *Users, m *Machine) { u.Local, u.Connections, m.Files = false, 19_489, 20_000 }, []string{"the limit of open files is 20000, but a runner with 19489 connections at a time needs 20001; raise it with `ulimit -n 20001`"}, nil},
		"files of the service": {func(u *Users, m *Machine) { u.Runners, u.Connections, m.Files = 2, 30_000, 20_000 },
			[]string{"the service with 30000 connections at a time needs 30512"}, nil},
		"files of nginx": {func(u *Users, m *Machine) { u.Proxied, m.Files = true, 20_000 }, []string{"nginx with 10000 connections at a time on each side needs 21024"}, nil},
		"a virtual user each": {func(u *Users, m *Machine) { *u = Users{VUs: 1000, Runners: 2}; m.Files = 1011 },
			[]string{"a runner with 500 connections at a time needs 1012"}, nil},
		"ports of one address":         {func(u *Users, _ *Machine) { u.Sources, u.Connections = 1, 28_233 }, []string{"28232 ephemeral ports are too few for 28233 connections of a runner at a time to one address"}, nil},
		"ports of sixteen addresses":   {func(u *Users, _ *Machine) { u.Connections = 28_233 }, nil, nil},
		"unlimited addresses":          {func(u *Users, _ *Machine) { u.Sources, u.Connections = 0, 28_233 }, nil, nil},
		"memory of open connections":   {func(_ *Users, m *Machine) { m.Available = 100 << 20 }, []string{"100 MiB of memory are available, but the run may use 851 MiB; lower the number"}, nil},
		"fewer cores than there are":   {func(u *Users, m *Machine) { u.Handshakes, m.Cores, m.Procs = true, 8, 2 }, nil, []string{"at most 2 of 8 cores; unset GOMAXPROCS"}},
		"one core for both ends":       {func(u *Users, m *Machine) { u.Handshakes, m.Cores, m.Procs = true, 1, 1 }, nil, []string{"share one core"}},
		"requests on fewer cores":      {func(_ *Users, m *Machine) { m.Cores, m.Procs = 8, 2 }, nil, nil},
		"memory of virtual users only": {func(u *Users, m *Machine) { *u, m.Available = Users{VUs: 2000, Runners: 1}, 100<<20 }, nil, []string{"the run may use 845 MiB; lower the number"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, m := with(c.edit)
			errs, warnings := u.Check(m)
			for _, pair := range [][2][]string{{c.errs, errs}, {c.warnings, warnings}} {
				require.Len(t, pair[1], len(pair[0]), "%q", pair[1])
				for i, want := range pair[0] {
					require.Contains(t, pair[1][i], want)
				}
			}
		})
	}
}
