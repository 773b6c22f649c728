package services

import "path/filepath"

// pocketbaseCommand returns the command of the server in pocketbase/, which embeds github.com/pocketbase/pocketbase.
func pocketbaseCommand(s setup) (command, error) {
	program, err := buildPath(s, "pocketbase", "pocketbase")
	if err != nil {
		return command{}, err
	}
	args := []string{"-listen", s.address, "-dir", filepath.Join(s.dir, "pb_data")}
	if s.Lifetime > 0 {
		args = append(args, "-lifetime", s.Lifetime.String())
	}
	return command{
		path: program, args: args, version: moduleVersion(program, "github.com/pocketbase/pocketbase"),
		settings: "one collection without access rules, each stream with a filter on the topic",
	}, nil
}
