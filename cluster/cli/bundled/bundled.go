// Package bundled finds the plans of a command line: those that a program brings along, by their
// names, beside files and standard input.
package bundled

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
)

// Plans are those that a program brings along, with the files that they name; without a file
// system there are none.
type Plans struct{ fs.FS }

// Plan is one that a program brings along.
type Plan struct {
	Name string `json:"name"`
	// About is what it asks, in a sentence.
	About string `json:"about"`
	// Data is the set that it trains on.
	Data string `json:"data"`
	// Text is its YAML.
	Text string `json:"plan,omitempty"`

	// Path is its path in the file system.
	Path string `json:"-"`
}

// Folder is where the examples lie in the source.
const Folder = "examples"

// All lists the examples in the order of their paths.
func (e Plans) All() (list []Plan) {
	if e.FS == nil {
		return nil
	}
	for _, pattern := range []string{"*.yaml", "*/*.yaml"} {
		files, _ := fs.Glob(e.FS, pattern) // the patterns are in order
		for _, file := range files {
			text, err := fs.ReadFile(e.FS, file)
			if err != nil {
				continue // a folder, with a strange name
			}
			name := strings.TrimSuffix(strings.TrimSuffix(file, ".yaml"), "/plan")
			list = append(list, Plan{Name: name, Text: string(text), Path: file})
		}
	}
	return list
}

// Names lists the names of the examples.
func (e Plans) Names() (names []string) {
	for _, one := range e.All() {
		names = append(names, one.Name)
	}
	return names
}

// Find returns the example of a name.
func (e Plans) Find(name string) (Plan, bool) {
	for _, one := range e.All() {
		if one.Name == name {
			return one, true
		}
	}
	return Plan{}, false
}

var firstSentence = regexp.MustCompile(`^.*?[.?](?: |$)`)

// Described says what a plan is about, by the first sentence of the comment that it begins with,
// and which data it needs.
func (e Plan) Described() Plan {
	var words []string
	for line := range strings.Lines(e.Text) {
		comment, ok := strings.CutPrefix(line, "#")
		if !ok {
			break
		}
		words = append(words, strings.Fields(comment)...)
	}
	e.About = strings.Join(words, " ")
	if first := firstSentence.FindString(e.About); first != "" {
		e.About = strings.TrimRight(first, " .")
	}
	if root, err := syntax.Parse(e.Path, []byte(e.Text)); err == nil {
		if set := root.At("data").At("set"); set.Kind == syntax.Scalar {
			e.Data = set.Text
		}
	}
	return e
}

// load reads an example. One that names files is laid out in the user's cache with all of its
// folder, so that what is recorded of it can be run again.
func (e Plans) load(one Plan, set []string) (*driver.Plan, error) {
	folder := path.Dir(one.Path)
	beside, err := fs.ReadDir(e.FS, folder)
	if err != nil {
		return nil, err
	}
	var others []string
	for _, entry := range beside {
		if !entry.IsDir() && path.Ext(entry.Name()) != ".yaml" {
			others = append(others, path.Join(folder, entry.Name()))
		}
	}
	if len(others) == 0 {
		return driver.Parse(filepath.Join(Folder, filepath.FromSlash(one.Path)), []byte(one.Text), set...)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, &driver.InputError{Err: fmt.Errorf("no folder to lay example %s out in: %w", one.Name, err)}
	}
	target := filepath.Join(cache, "gradwire", Folder)
	for _, file := range append(others, one.Path) {
		if err := e.layOut(file, target); err != nil {
			return nil, fmt.Errorf("example %s cannot be laid out: %w", one.Name, err)
		}
	}
	return driver.Load(filepath.Join(target, filepath.FromSlash(one.Path)), set...)
}

// layOut copies a file into a folder, unless it is there.
func (e Plans) layOut(file, folder string) error {
	text, err := fs.ReadFile(e.FS, file)
	if err != nil {
		return err
	}
	target := filepath.Join(folder, filepath.FromSlash(file))
	if have, err := os.ReadFile(target); err == nil && bytes.Equal(have, text) { //nolint:gosec // in the user's cache
		return nil
	}
	//nolint:gosec // as readable as the user's other files
	if err := os.MkdirAll(filepath.Dir(target), 0o777); err != nil {
		return err
	}
	//nolint:gosec // as readable as the user's other files
	return os.WriteFile(target, text, 0o666)
}

// Read reads the plan that a command line names and changes it as set, assignments KEY=VALUE, says:
// in for [StandardInput], a file, or else an example by its name. An InputError says what is wrong
// with it.
func (e Plans) Read(name string, in io.Reader, set []string) (*driver.Plan, error) {
	if name == StandardInput {
		return readStream(in, set)
	}
	info, missing := os.Stat(name)
	if one, ok := e.Find(name); ok && (missing != nil || info.IsDir()) {
		return e.load(one, set)
	}
	p, err := driver.Load(name, set...)
	if e.FS != nil && errors.Is(missing, fs.ErrNotExist) && filepath.Ext(name) == "" {
		err = &driver.InputError{Err: fmt.Errorf("%w; nor is there an example of that name%s", err,
			syntax.Suggestion(name, e.Names()))}
	}
	return p, err
}

// StandardInput is what a plan is called that is read from there.
const StandardInput = "-"

// readStream reads a plan from a stream and changes it; errors call it stdin.
func readStream(in io.Reader, set []string) (*driver.Plan, error) {
	src, err := io.ReadAll(io.LimitReader(in, syntax.MaxBytes+1))
	if err != nil {
		return nil, &driver.InputError{Err: fmt.Errorf("the plan cannot be read: %w", err)}
	}
	return driver.Parse("stdin", src, set...)
}
