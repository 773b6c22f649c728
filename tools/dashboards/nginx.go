package dashboards

// ofNginx selects what nginx-prometheus-exporter reads from stub_status.
const ofNginx = `{instance=~"$instance"}`

func nginx() Board {
	return Board{
		Name: "nginx", Title: "Soak: nginx",
		About:     "The proxy in front of the backend, as stub_status tells through nginx-prometheus-exporter.",
		Variables: []Variable{instanceOf("nginx_up", "exporters of nginx")},
		Rows: []Row{
			{"Now", []line{
				{
					number("Up", count,
						"Whether the exporter reaches stub_status.",
						`min(nginx_up`+ofNginx+`)`, "up").badBelow(1),
					number("Connections of clients", count,
						"Connections of clients that nginx holds, streams and the scrape itself.",
						`sum(nginx_connections_active`+ofNginx+`)`, "active"),
					number("Accepted, not handled", count,
						"Connections that nginx dropped because worker_connections or descriptors were used up, since it started. One is enough to raise "+
							"worker_connections, which counts both sides of each stream.",
						`sum(nginx_connections_accepted`+ofNginx+` - nginx_connections_handled`+ofNginx+`)`, "dropped").badFrom(1),
					number("Beside the backend's streams", count,
						"Connections of clients minus the streams that the backend holds. A few are the scrape and requests under way. Many: streams that one side lost "+
							"and the other still holds.",
						`sum(nginx_connections_active`+ofNginx+`) - sum(backend_streams_open)`, "difference"),
				},
			}},
			{"Over time", []line{
				{
					graph("Connections by state", count,
						"Active is all. An open stream counts as writing, a kept-alive connection without a request as waiting; reading is a request's head under way.",
						`sum(nginx_connections_active`+ofNginx+`)`, "active",
						`sum(nginx_connections_reading`+ofNginx+`)`, "reading",
						`sum(nginx_connections_writing`+ofNginx+`)`, "writing",
						`sum(nginx_connections_waiting`+ofNginx+`)`, "waiting"),
					graph("nginx and the backend", count,
						"Connections that nginx writes to, and streams that the backend holds. They move together; a gap after a reload of nginx is old workers, which "+
							"stub_status counts no more.",
						`sum(nginx_connections_writing`+ofNginx+`)`, "nginx writes to",
						`sum(backend_streams_open)`, "the backend holds"),
				},
				{
					graph("Accepted and handled per second", countsPerSecond,
						"New connections. Accepts while a run holds mean clients reconnect, or another client.",
						`sum(rate(nginx_connections_accepted`+ofNginx+`[$__rate_interval]))`, "accepted",
						`sum(rate(nginx_connections_handled`+ofNginx+`[$__rate_interval]))`, "handled"),
					graph("Requests per second", requestsPerSecond,
						"Requests, each stream once when it opens and once for its DELETE.",
						`sum(rate(nginx_http_requests_total`+ofNginx+`[$__rate_interval]))`, "requests"),
					graph("Dropped since the start", count,
						"Accepted minus handled: see above. It never falls until nginx starts anew.",
						`sum(nginx_connections_accepted`+ofNginx+` - nginx_connections_handled`+ofNginx+`)`, "dropped").badFrom(1),
				},
			}},
		},
	}
}
