package cli

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

	"github.com/spf13/cobra"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
)

// examples are the plans that a program brings along, with the files that they name; nil if it
// brings none.
type examples struct{ fs.FS }

// example is a plan that a program brings along.
type example struct {
	Name string `json:"name"`
	// About is what it asks, in a sentence.
	About string `json:"about"`
	// Data is the set that it trains on.
	Data string `json:"data"`
	Plan string `json:"plan,omitempty"`

	file string // its path in the program
}

// exampleFolder is where the examples lie in the source.
const exampleFolder = "examples"

// all lists the examples in the order of their paths.
func (e examples) all() (list []example) {
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
			list = append(list, example{Name: name, Plan: string(text), file: file})
		}
	}
	return list
}

// names lists the names of the examples.
func (e examples) names() (names []string) {
	for _, one := range e.all() {
		names = append(names, one.Name)
	}
	return names
}

// find returns the example of a name.
func (e examples) find(name string) (example, bool) {
	for _, one := range e.all() {
		if one.Name == name {
			return one, true
		}
	}
	return example{}, false
}

var firstSentence = regexp.MustCompile(`^.*?[.?](?: |$)`)

// described says what a plan is about, by the first sentence of the comment that it begins with,
// and which data it needs.
func (e example) described() example {
	var words []string
	for line := range strings.Lines(e.Plan) {
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
	if root, err := syntax.Parse(e.file, []byte(e.Plan)); err == nil {
		if set := root.At("data").At("set"); set.Kind == syntax.Scalar {
			e.Data = set.Text
		}
	}
	return e
}

// load reads an example. One that names files is laid out in the user's cache with all of its
// folder, so that what is recorded of it can be run again.
func (e examples) load(one example, set []string) (*driver.Plan, error) {
	folder := path.Dir(one.file)
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
		return driver.Parse(filepath.Join(exampleFolder, filepath.FromSlash(one.file)), []byte(one.Plan), set...)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, &driver.InputError{Err: fmt.Errorf("no folder to lay example %s out in: %w", one.Name, err)}
	}
	target := filepath.Join(cache, "gradwire", exampleFolder)
	for _, file := range append(others, one.file) {
		if err := e.layOut(file, target); err != nil {
			return nil, fmt.Errorf("example %s cannot be laid out: %w", one.Name, err)
		}
	}
	return driver.Load(filepath.Join(target, filepath.FromSlash(one.file)), set...)
}

// layOut copies a file into a folder, unless it is there.
func (e examples) layOut(file, folder string) error {
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

// readPlan reads the plan of a command line and changes it: standard input, a file, or else an
// example by its name.
func (e examples) readPlan(name string, in io.Reader, set []string) (*driver.Plan, error) {
	if name == standardInput {
		return readStream(in, set)
	}
	info, missing := os.Stat(name)
	if one, ok := e.find(name); ok && (missing != nil || info.IsDir()) {
		return e.load(one, set)
	}
	p, err := driver.Load(name, set...)
	if e.FS != nil && errors.Is(missing, fs.ErrNotExist) && filepath.Ext(name) == "" {
		err = &driver.InputError{Err: fmt.Errorf("%w; nor is there an example of that name%s", err,
			syntax.Suggestion(name, e.names()))}
	}
	return p, err
}

// standardInput is what a plan is called that is read from there.
const standardInput = "-"

// readStream reads a plan from a stream and changes it; errors call it stdin.
func readStream(in io.Reader, set []string) (*driver.Plan, error) {
	src, err := io.ReadAll(io.LimitReader(in, syntax.MaxBytes+1))
	if err != nil {
		return nil, &driver.InputError{Err: fmt.Errorf("the plan cannot be read: %w", err)}
	}
	return driver.Parse("stdin", src, set...)
}

// addTo adds what the examples need to a program: a command that lists them, and their names in the
// examples of other commands.
func (e examples) addTo(root *cobra.Command, con *console) {
	if e.FS == nil {
		return
	}
	var names []string
	for _, one := range e.all() {
		names = append(names, exampleFolder+"/"+one.file, one.Name)
	}
	named := strings.NewReplacer(names...)
	for _, cmd := range root.Commands() {
		if cmd.Name() == "list" {
			cmd.AddCommand(examplesCommand(e, con))
		}
		for _, sub := range append(cmd.Commands(), cmd) {
			sub.Example = named.Replace(sub.Example)
		}
	}
	root.Example = named.Replace(root.Example)
}

func examplesCommand(e examples, con *console) *cobra.Command {
	names := e.names()
	return &cobra.Command{
		Use: "examples [NAME]", Short: "List the plans that the program brings along",
		Long: `List the plans that the program brings along, each with what it is about and the data set that it
needs. Every command that takes a plan takes the name of one; a file of that name comes first. With a
name, show the plan.`,
		Example: `  gradwire list examples
  gradwire list examples quickstart > mine.yaml
  gradwire run quickstart`,
		ValidArgsFunction: upTo(1, eachOnce(names...)),
		Args:              atMostOne("name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				all := e.all()
				for i := range all {
					all[i] = all[i].described()
					all[i].Plan = ""
				}
				return con.table(all, func(w io.Writer) {
					for _, one := range all {
						fmt.Fprintf(w, "%s\t%s\t%s\n", one.Name, one.Data, one.About)
					}
				})
			}
			one, ok := e.find(args[0])
			if !ok {
				return usage(cmd, unknown(args[0], "one of the examples", names))
			}
			return con.say(one.described(), "%s", one.Plan)
		},
	}
}
