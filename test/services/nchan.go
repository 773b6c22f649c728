package services

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/host/process"
)

var nchanModules = []string{"/usr/lib/nginx/modules/ngx_nchan_module.so", "/usr/lib64/nginx/modules/ngx_nchan_module.so"}

// nchanCommand returns the command of nginx with the module nchan from Debian's package libnginx-mod-nchan.
func nchanCommand(s setup) (command, error) {
	nginx, err := find("nchan", "nginx", "nginx-light libnginx-mod-nchan")
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
		return command{}, &MissingError{"nchan", "nginx lacks the module nchan; run `apt-get install libnginx-mod-nchan`"}
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
	path, err := configure(s, "nchan.conf", map[string]any{
		"Module": module, "Dir": s.dir, "Address": s.address, "Root": os.Geteuid() == 0, "Workers": workers,
		// 512 more connections for publishers and for nchan itself.
		"Connections": streams + 512, "Files": streams + 1024,
		"Ping": seconds(s.Heartbeat, 30*time.Second), "Buffer": buffer,
	})
	if err != nil {
		return command{}, err
	}
	return command{
		path: nginx, args: []string{"-e", filepath.Join(s.dir, "error.log"), "-c", path}, version: nchanVersion(nginx),
		settings: fmt.Sprintf("%d worker, no access log, buffer of %d messages per topic", workers, buffer),
	}, nil
}

// find returns the path of a program that a service needs. packages are the Debian packages that contain the program.
func find(service, program, packages string) (string, error) {
	path, err := process.Find(program)
	if err != nil {
		return "", &MissingError{service, program + " is not installed; run `apt-get install " + packages + "`"}
	}
	return path, nil
}

func nchanVersion(nginx string) string {
	var versions []string
	if out, err := exec.Command("dpkg-query", "-W", "-f", "${Version}", "libnginx-mod-nchan").Output(); err == nil {
		versions = append(versions, "nchan "+string(out))
	}
	if version := nginxVersion(nginx); version != "" {
		versions = append(versions, version)
	}
	return strings.Join(versions, ", ")
}

func nginxVersion(nginx string) string {
	out, err := exec.Command(nginx, "-v").CombinedOutput()
	if err != nil {
		return ""
	}
	_, version, _ := strings.Cut(strings.TrimSpace(string(out)), "nginx/")
	return "nginx " + version
}
