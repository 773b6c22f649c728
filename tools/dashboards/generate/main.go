// Command generate writes the dashboards as JSON into the folder it is given.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/sse-soak/sse-soak/tools/dashboards"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generate FOLDER")
		os.Exit(64)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(folder string) error {
	for _, b := range dashboards.Boards() {
		text, err := b.JSON()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, b.Name+".json"), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
