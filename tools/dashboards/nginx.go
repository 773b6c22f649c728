package dashboards

import "github.com/grafana/grafana-foundation-sdk/go/units"

// ofNginx selects what nginx-prometheus-exporter reads from stub_status.
const ofNginx = `{instance=~"$instance"}`

func nginx() Board {
	return Board{
		Name:  "nginx",
		Title: "Soak: nginx",
		About: "The proxy in front of the backend, as stub_status tells through nginx-prometheus-exporter.",
		Variables: []Variable{
			instanceOf("nginx_up", "exporters of nginx"),
		},
		Rows: []Row{
			{Title: "Now", Panels: []Panel{
				{
					Title: "Up", Number: true, Width: 6, Unit: units.Short, Limit: atLeast(1),
					About:   "Whether the exporter reaches stub_status.",
					Queries: []Query{{`min(nginx_up` + ofNginx + `)`, "up"}},
				},
				{
					Title: "Connections of clients", Number: true, Width: 6, Unit: units.Short,
					About:   "Connections of clients that nginx holds, streams and the scrape itself.",
					Queries: []Query{{`sum(nginx_connections_active` + ofNginx + `)`, "active"}},
				},
				{
					Title: "Accepted, not handled", Number: true, Width: 6, Unit: units.Short, Limit: atMost(1),
					About: "Connections that nginx dropped because worker_connections or descriptors were used up, since it " +
						"started. One is enough to raise worker_connections, which counts both sides of each stream.",
					Queries: []Query{{`sum(nginx_connections_accepted` + ofNginx + ` - nginx_connections_handled` + ofNginx + `)`, "dropped"}},
				},
				{
					Title: "Beside the backend's streams", Number: true, Width: 6, Unit: units.Short,
					About: "Connections of clients minus the streams that the backend holds. A few are the scrape and requests under " +
						"way. Many: streams that one side lost and the other still holds.",
					Queries: []Query{{`sum(nginx_connections_active` + ofNginx + `) - sum(backend_streams_open)`, "difference"}},
				},
			}},
			{Title: "Over time", Panels: []Panel{
				{
					Title: "Connections by state", Width: 12, Unit: units.Short,
					About: "Active is all. A held stream counts as writing, a kept-alive connection without a request as waiting; " +
						"reading is a request's head under way.",
					Queries: []Query{
						{`sum(nginx_connections_active` + ofNginx + `)`, "active"},
						{`sum(nginx_connections_reading` + ofNginx + `)`, "reading"},
						{`sum(nginx_connections_writing` + ofNginx + `)`, "writing"},
						{`sum(nginx_connections_waiting` + ofNginx + `)`, "waiting"},
					},
				},
				{
					Title: "nginx and the backend", Width: 12, Unit: units.Short,
					About: "Connections that nginx writes to, and streams that the backend holds. They move together; a gap after a " +
						"reload of nginx is old workers, which stub_status counts no more.",
					Queries: []Query{
						{`sum(nginx_connections_writing` + ofNginx + `)`, "nginx writes to"},
						{`sum(backend_streams_open)`, "the backend holds"},
					},
				},
				{
					Title: "Accepted and handled per second", Width: 8, Unit: units.CountsPerSecond,
					About: "New connections. Accepts while a run holds mean clients reconnect, or another client.",
					Queries: []Query{
						{`sum(rate(nginx_connections_accepted` + ofNginx + `[$__rate_interval]))`, "accepted"},
						{`sum(rate(nginx_connections_handled` + ofNginx + `[$__rate_interval]))`, "handled"},
					},
				},
				{
					Title: "Requests per second", Width: 8, Unit: units.RequestsPerSecond,
					About:   "Requests, each stream once when it opens and once for its DELETE.",
					Queries: []Query{{`sum(rate(nginx_http_requests_total` + ofNginx + `[$__rate_interval]))`, "requests"}},
				},
				{
					Title: "Dropped since the start", Width: 8, Unit: units.Short, Limit: atMost(1),
					About:   "Accepted minus handled: see above. It never falls until nginx starts anew.",
					Queries: []Query{{`sum(nginx_connections_accepted` + ofNginx + ` - nginx_connections_handled` + ofNginx + `)`, "dropped"}},
				},
			}},
		},
	}
}
