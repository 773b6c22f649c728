package plan

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"text/template"

	"github.com/spf13/pflag"
	"gopkg.in/yaml.v3"
)

// SettingsFile is the name of the settings file that `soak run` reads from the working directory, if it exists.
const SettingsFile = "soak.yaml"

const (
	// FromFile is the annotation of a flag that the settings file sets.
	FromFile = "from-file"
	// AllowActions is the name of the flag that allows the commands of the settings file.
	AllowActions = "allow-actions"
)

// FlagsFromFile sets flags from a YAML file whose keys are the names of flags. It does not change flags that the
// command line or a variable has set. A key without a flag is an error unless ignoreKey reports true for the key,
// because other commands read the same file. If the file is missing, read is false, and explicit decides whether this
// is an error. A link to a missing file is always an error.
func FlagsFromFile(flags *pflag.FlagSet, path string, explicit bool, ignoreKey func(name string) bool) (read bool, err error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return false, fmt.Errorf("read the settings: %s must be a regular file; name another file with --config", path)
	}
	text, err := os.ReadFile(path) // #nosec G304 -- the user's settings file
	if _, linkErr := os.Readlink(path); linkErr == nil && errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("read the settings: %s is a link to a missing file; fix or remove the link", path)
	}
	if errors.Is(err, fs.ErrNotExist) && !explicit {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the settings: %w", err)
	}
	settings := map[string]yaml.Node{} // the parser rejects a duplicate key
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&settings); err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("read %s: not YAML such as `connections: 1200`: %s", path, strings.Join(strings.Fields(err.Error()), " "))
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("%s must be one YAML document; remove the lines with ---", path)
	}
	for _, name := range slices.SortedFunc(maps.Keys(settings), func(a, b string) int { return settings[a].Line - settings[b].Line }) {
		node := settings[name]
		if flags.Lookup(name) == nil && ignoreKey(name) {
			continue
		}
		if err := setFromFile(flags, name, &node); err != nil {
			return false, fmt.Errorf("%s, line %d: %w", path, node.Line, err)
		}
	}
	return true, nil
}

// An UnknownKeyError reports a key of a settings file that is not a setting.
type UnknownKeyError string

func (e UnknownKeyError) Error() string {
	return string(e) + " is not a setting; see `soak run --help-all`"
}

func setFromFile(flags *pflag.FlagSet, name string, node *yaml.Node) error {
	flag := flags.Lookup(name)
	switch {
	case strings.HasSuffix(name, "token"):
		return fmt.Errorf("%s must not be in a file, because it is a secret; set the variable %s", name, strings.ToUpper(strings.ReplaceAll(name, "-", "_")))
	case name == AllowActions:
		return fmt.Errorf("%s must be a command-line flag, because a file cannot allow its own commands; remove it from the file", name)
	case flag == nil || name == "help" || name == "config":
		return UnknownKeyError(name)
	case flag.Changed:
		return nil
	}
	if err := flags.SetAnnotation(name, FromFile, nil); err != nil {
		return err
	}
	values := []*yaml.Node{node}
	if node.Kind == yaml.SequenceNode {
		if values = node.Content; len(values) != 1 && !isRepeatable(flag) {
			return fmt.Errorf("%s must have one value, got %d; write one%s", name, len(values), example(flag))
		}
	}
	for _, value := range values {
		switch {
		case value.Kind != yaml.ScalarNode:
			return fmt.Errorf("%s must be a string, a number or a boolean; put quotes around a string that contains a colon and a space", name)
		case value.Tag == "!!null":
			return fmt.Errorf("%s must have a value; write one%s, or remove the line", name, example(flag))
		}
		if err := flags.Set(name, value.Value); err != nil {
			return fmt.Errorf("%s must be %s, got %q", name, Kind(flag.Value), value.Value)
		}
	}
	return nil
}

// example returns the default of a flag as a line of the settings file, for the end of a sentence. It returns "" for a
// flag without a default, unless the flag accepts several numbers.
func example(flag *pflag.Flag) string {
	text := flag.DefValue
	if text == "" && acceptsNumbers(flag.Name) {
		text = "10,20"
	}
	if text == "" {
		return ""
	}
	return fmt.Sprintf(", such as `%s: %s`", flag.Name, text)
}

// acceptsNumbers reports whether a suite has a setting for several numbers whose flag has the given name.
func acceptsNumbers(name string) bool {
	for _, settings := range scriptSettings {
		if slices.ContainsFunc(settings, func(s Setting) bool { return s.Flag() == name && s.Value == numbersType }) {
			return true
		}
	}
	return false
}

func isRepeatable(flag *pflag.Flag) bool {
	s, ok := flag.Value.(Setting)
	if !ok {
		return false
	}
	_, ok = s.Value.(*[]string)
	return ok
}

var fileTemplate = template.Must(template.New("").Parse(`# Settings of ` + "`soak run`" + ` in this folder. A flag overrides its variable, which overrides this file.
{{range .}}
# {{.Help}}
{{.Line}}
{{end}}`))

// SettingsText returns the text of a settings file with all settings of a soak that have a flag. values maps names of
// flags to values; only a repeatable flag may have several values. A setting that is not in values becomes a comment
// with the default.
func SettingsText(values map[string][]string) (string, error) {
	type row struct{ Help, Line string }
	p, l := Default(), DefaultLocal()
	p.ConnectionsPerVU = 0 // `soak run` chooses the number
	var rows []row
	for _, s := range ForSuite("", append(p.Settings(), l.Settings()...)) {
		if s.Help == "" {
			continue
		}
		texts, ok := values[s.Flag()]
		comment := ""
		if !ok {
			texts, comment = []string{s.String()}, "# "
		}
		value := scalar(texts[0])
		if len(texts) > 1 {
			var list []any
			for _, text := range texts {
				list = append(list, scalar(text))
			}
			value = list
		}
		line, err := yaml.Marshal(map[string]any{s.Flag(): value})
		if err != nil {
			return "", fmt.Errorf("write %s: %w", s.Flag(), err)
		}
		rows = append(rows, row{s.Help, comment + strings.TrimSpace(string(line))})
	}
	var out strings.Builder
	err := fileTemplate.Execute(&out, rows)
	return out.String(), err
}

// scalar returns the YAML value of text: a number if YAML writes this number as the same text, otherwise a string. The
// topic 007 is a string.
func scalar(text string) any {
	var v any
	if yaml.Unmarshal([]byte(text), &v) != nil {
		return text
	}
	switch v.(type) {
	case int, float64:
		if written, err := yaml.Marshal(v); err == nil && strings.TrimSpace(string(written)) == text {
			return v
		}
	}
	return text
}
