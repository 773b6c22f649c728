package process

import "os/exec"

// Find returns the path of a program in PATH or in /usr/sbin, which Debian omits from the PATH of ordinary users.
func Find(name string) (path string, err error) {
	if path, err = exec.LookPath(name); err != nil {
		if path, sbinErr := exec.LookPath("/usr/sbin/" + name); sbinErr == nil {
			return path, nil
		}
	}
	return path, err
}
