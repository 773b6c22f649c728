package results

import "path/filepath"

// BaselineFile names the run that `soak report --baseline` last compared this one with.
const BaselineFile = "baseline.json"

// named is the content of that file.
type named struct {
	Folder string `json:"folder"` // of the run that was named, without the folders above it
}

// nameBaseline keeps which run was named to compare this one with. A report that is made again without one ("") says
// nothing against the run that was named before.
func (d Dir) nameBaseline(against Dir) error {
	if against == "" {
		return nil
	}
	if real, err := filepath.EvalSymlinks(string(against)); err == nil { // results/latest leads elsewhere tomorrow
		against = Dir(real)
	}
	return d.WriteJSON(BaselineFile, named{against.name()})
}

// Baseline returns the folder of the run in BaselineFile, or "" without that file.
func (d Dir) Baseline() (string, error) {
	var n named
	_, err := d.readJSON(BaselineFile, &n)
	return n.Folder, err
}
