package results

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// BaselineFile says which run the report is compared with, where somebody named one.
const BaselineFile = "baseline.json"

// named is the content of that file.
type named struct {
	Folder string `json:"folder"` // of the run that was named, without the folders above it
}

// nameBaseline keeps which run was named to compare this one with; "": none was.
func (d Dir) nameBaseline(against Dir) error {
	if against != "" {
		if real, err := filepath.EvalSymlinks(string(against)); err == nil { // results/latest leads elsewhere tomorrow
			against = Dir(real)
		}
		return d.WriteJSON(BaselineFile, named{against.name()})
	}
	if err := os.Remove(d.Path(BaselineFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget the baseline of an earlier report: %w", err)
	}
	return nil
}

// Baseline is the folder of the run that somebody named to compare this one with, "" where nobody did.
func (d Dir) Baseline() (string, error) {
	var n named
	_, err := d.readJSON(BaselineFile, &n)
	return n.Folder, err
}
