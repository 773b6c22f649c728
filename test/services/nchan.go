package services

import (
	"bytes"
	_ "embed" // the template
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"
	"time"
)

//go:embed nchan.conf.tmpl
var nchanSource string

var nchanTemplate = template.Must(template.New("nchan.conf").Parse(nchanSource))

// nchan is a module of nginx, of Debian's package libnginx-mod-nchan.
var nchan = definition{name: "nchan", service: "nchan", set: setNchan}

// nchanModules are where distributions put the module.
var nchanModules = []string{"/usr/lib/nginx/modules/ngx_nchan_module.so", "/usr/lib64/nginx/modules/ngx_nchan_module.so"}

func setNchan(s setup) (command, error) {
	nginx, err := findNginx("nchan", "nginx-light libnginx-mod-nchan")
	if err != nil {
		return command{}, err
	}
	module := ""
	for _, path := range nchanModules {
		if _, err := os.Stat(path); err == nil {
			module = path
		}
	}
	if module == "" {
		return command{}, &Missing{"nchan", "nginx lacks its module: apt-get install libnginx-mod-nchan"}
	}
	streams := s.Streams
	if streams == 0 {
		streams = 4000
	}
	buffer := s.History
	switch {
	case buffer == 0:
		buffer = 1000
	case buffer < 0:
		buffer = 0
	}
	const workers = 1
	var config bytes.Buffer
	if err := nchanTemplate.Execute(&config, map[string]any{
		"Module": module, "Dir": s.dir, "Address": s.address, "Root": os.Geteuid() == 0, "Workers": workers,
		// What is not a stream: publishers, and nchan's own.
		"Connections": streams + 512, "Files": streams + 1024,
		"Ping": seconds(s.Heartbeat, 30*time.Second), "Buffer": buffer,
	}); err != nil {
		return command{}, err
	}
	path := filepath.Join(s.dir, "nchan.conf")
	if err := os.WriteFile(path, config.Bytes(), 0o600); err != nil {
		return command{}, fmt.Errorf("write nchan's configuration: %w", err)
	}
	return command{
		path: nginx, args: []string{"-e", filepath.Join(s.dir, "error.log"), "-c", path}, version: nchanVersion(nginx),
		settings: fmt.Sprintf("%d worker, no access log, buffer of %d messages per topic", workers, buffer),
	}, nil
}

// findNginx finds nginx for a service. The packages have it.
func findNginx(service, packages string) (string, error) {
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		nginx = "/usr/sbin/nginx"
	}
	if _, err := os.Stat(nginx); err != nil {
		return "", &Missing{service, "nginx is not installed: apt-get install " + packages}
	}
	return nginx, nil
}

// nchanVersion is empty for what cannot be found out: the module does not say its version, Debian's dpkg does.
func nchanVersion(nginx string) string {
	var known []string
	if out, err := exec.Command("dpkg-query", "-W", "-f", "${Version}", "libnginx-mod-nchan").Output(); err == nil {
		known = append(known, "nchan "+string(out))
	}
	if version := nginxVersion(nginx); version != "" {
		known = append(known, version)
	}
	return strings.Join(known, ", ")
}

// nginxVersion is empty if it cannot be found out.
func nginxVersion(nginx string) string {
	out, err := exec.Command(nginx, "-v").CombinedOutput()
	if err != nil {
		return ""
	}
	_, version, _ := strings.Cut(strings.TrimSpace(string(out)), "nginx/")
	return "nginx " + version
}
