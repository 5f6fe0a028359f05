//go:build unix

package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/turns"
)

// A document's commands are lines of four spaces that begin with one of these.
var commandWords = []string{"go", "gradwire", "export", "env"}

// elsewhere are commands that the documents show and this test leaves to others.
var elsewhere = map[string]string{
	"go test ./...":              "runs this test",
	"gradwire remove SUBMISSION": "takes one that has ended; absence_test.go in driver has it",
	"gradwire data check":        "exits 1 where no data set is; input_test.go has one",
	"gradwire data get mnist":    "needs the network; data_test.go has its own server",
}

// shown is a command of a document, and the lines below it that it is said to print.
type shown struct {
	command string
	output  []string
}

// commandsOf lists what a document shows, in its order, with notation carried out: what is in
// brackets is left out, of `a|b` each is a command, and a comment is none. Indented lines that
// follow a command and are none are its output.
func commandsOf(t *testing.T, path string) (commands []shown) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	optional, several := regexp.MustCompile(`\s*\[[^]]*\]`), regexp.MustCompile(`([A-Z])\.\.\.`)
	open := false // whether what comes next may be output
	for line := range strings.Lines(string(text)) {
		line, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "    ")
		word, _, _ := strings.Cut(line, " ")
		if !ok || !slices.Contains(commandWords, word) {
			if open = open && ok; open {
				last := &commands[len(commands)-1]
				last.output = append(last.output, line)
			}
			continue
		}
		line, _, _ = strings.Cut(line, " #")
		line = several.ReplaceAllString(optional.ReplaceAllString(line, ""), "$1")
		for part := range strings.SplitSeq(line, ";") {
			for _, command := range alternatives(strings.Fields(part)) {
				commands = append(commands, shown{command: command})
			}
		}
		open = true
	}
	return commands
}

// printedAs says whether a command has printed the lines that a document shows, which may be fewer.
// In these, … stands for what changes from one machine, version or minute to another; alone on a
// line, for any lines.
func printedAs(lines []string, printed string) bool {
	var pattern strings.Builder
	pattern.WriteString(`\A`)
	for _, line := range lines {
		if line == "…" {
			pattern.WriteString(`(?s:.*\n)?`)
			continue
		}
		quoted := regexp.QuoteMeta(strings.TrimRight(line, " "))
		pattern.WriteString(strings.ReplaceAll(quoted, "…", ".*") + ` *\n`)
	}
	return regexp.MustCompile(pattern.String()).MatchString(printed)
}

// alternatives writes `x a|b` as the commands `x a` and `x b`, and `x a | b c` likewise.
func alternatives(words []string) (commands []string) {
	if i := slices.Index(words, "|"); i >= 0 {
		return append(alternatives(words[:i]), alternatives(append(words[:1:1], words[i+1:]...))...)
	}
	for i, word := range words {
		if strings.Contains(word, "|") {
			for each := range strings.SplitSeq(word, "|") {
				commands = append(commands, strings.Join(slices.Concat(words[:i], []string{each}, words[i+1:]), " "))
			}
			return commands
		}
	}
	return []string{strings.Join(words, " ")}
}

// reader is somebody who types what a document shows: commands of Go in the source, all others in a
// folder that has the examples.
type reader struct {
	t           *testing.T
	source, dir string
	environment []string
	names       map[string]string // what stands for names such as PLAN
	fresh       func() string     // submits a plan and returns its SUBMISSION
}

func newReader(t *testing.T) *reader {
	t.Helper()
	r := &reader{t: t, dir: t.TempDir()}
	var err error
	if r.source, err = filepath.Abs(source); err == nil {
		err = os.Symlink(filepath.Join(r.source, "examples"), filepath.Join(r.dir, "examples"))
	}
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(r.dir, "bin")
	r.environment = append(os.Environ(),
		"GOBIN="+bin, "PATH="+bin+":"+os.Getenv("PATH"), "GRADWIRE_JOIN=", "GRADWIRE_IDENTITY=")
	r.run("go install ./cmd/gradwire")
	write(t, filepath.Join(r.dir, "typed.yaml"), strings.ReplaceAll(small, "far", "slow"))
	r.run("gradwire run typed.yaml --out results/typed")
	r.names = map[string]string{
		"PLAN": "typed.yaml", "DIR": "results/typed", "DIR/runs/NNNN": "results/typed/runs/0000",
		"A": "results/typed", "B": "results/typed",
	}
	return r
}

// run runs a command, which must succeed, and returns what it printed on standard output.
func (r *reader) run(command string) string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "sh", "-c", command)
	if c.Dir, c.Env = r.dir, r.environment; strings.HasPrefix(command, "go ") {
		c.Dir = r.source
	}
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		r.t.Errorf("%s: %v\n%s%s", command, err, out.String(), errs.String())
	}
	return out.String()
}

// serve runs a command that goes on, until it has said something.
func (r *reader) serve(command, until string) (lines []string) {
	r.t.Helper()
	c := exec.Command("sh", "-c", "exec "+command)
	c.Dir, c.Env = r.dir, r.environment
	out, err := c.StdoutPipe()
	if err == nil {
		c.Stderr = c.Stdout
		err = c.Start()
	}
	if err != nil {
		r.t.Fatalf("%s: %v", command, err)
	}
	r.t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGINT)
		if err := c.Wait(); err != nil {
			r.t.Errorf("%s: %v", command, err)
		}
	})
	s := bufio.NewScanner(out)
	for s.Scan() {
		lines = append(lines, s.Text())
		if strings.Contains(s.Text(), until) {
			go func() {
				for s.Scan() {
				}
			}()
			return lines
		}
	}
	r.t.Fatalf("%s ended:\n%s", command, strings.Join(lines, "\n"))
	return nil
}

// export adds assignments to the environment.
func (r *reader) export(assignments string) {
	r.environment = append(r.environment, strings.Fields(assignments)...)
}

// enter types a command of a document, and compares what it prints with what the document shows.
func (r *reader) enter(s shown) {
	r.t.Helper()
	words := strings.Fields(s.command)
	for i, word := range words {
		switch name, known := r.names[word]; {
		case word == "DIR" && words[i-1] == "--out":
			words[i] = filepath.Join(r.dir, "results", fmt.Sprint(time.Now().UnixNano()))
		case known:
			words[i] = name
		case word == "SUBMISSION":
			if words[i] = r.fresh(); words[1] == "fetch" {
				r.run("gradwire logs --follow " + words[i])
			}
		}
	}
	typed := strings.Join(words, " ")
	if strings.Contains(typed, "submit examples/quickstart.yaml") {
		typed += " --set stop.epochs=0.3" // or it takes half a minute
	}
	for from, to := range r.names {
		if strings.Contains(from, ":") {
			typed = strings.ReplaceAll(typed, from, to)
		}
	}
	began := time.Now()
	if printed := r.carryOut(typed); !printedAs(s.output, printed) {
		r.t.Errorf("%s prints\n%s\nbut the document shows\n%s", typed, printed, strings.Join(s.output, "\n"))
	}
	r.t.Logf("%.1f s: %s", time.Since(began).Seconds(), typed)
}

// carryOut carries a command out, each in its way, and returns what it printed if it has ended.
func (r *reader) carryOut(typed string) string {
	r.t.Helper()
	if where, program, found := strings.Cut(typed, "go run ./"); found {
		// What it leaves is not to lie in the source: it is made there, and run here.
		folder, rest, _ := strings.Cut(program, " ")
		binary := filepath.Join(r.dir, "bin", filepath.Base(folder))
		r.run("go build -o " + binary + " ./" + folder)
		typed = where + binary + " " + rest
	}
	switch {
	case strings.HasPrefix(typed, "export "):
		r.export(strings.TrimPrefix(typed, "export "))
	case strings.HasPrefix(typed, "gradwire up"):
		for _, line := range r.serve(typed, "gradwire submit") {
			if assignments, ok := strings.CutPrefix(strings.TrimSpace(line), "export "); ok {
				r.export(assignments)
			}
		}
	case strings.HasPrefix(typed, "gradwire node "):
		r.serve(typed, "ready at ")
	default:
		return r.run(typed)
	}
	return ""
}

// submitted submits a plan that takes a while, and returns its name.
func (r *reader) submitted() string {
	out := strings.Fields(r.run(
		"gradwire submit typed.yaml --set stop.epochs=20 --set nodes.near.compute.step=1ms --detach"))
	if len(out) == 0 {
		r.t.Fatal("nothing was submitted")
	}
	return out[len(out)-1]
}

// freeAddress is one of this machine with a port that is free over TCP and UDP.
func freeAddress(t *testing.T) string {
	t.Helper()
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := l.Addr().String()
		p, err := net.ListenPacket("udp", address)
		_ = l.Close()
		if err == nil {
			_ = p.Close()
			return address
		}
	}
}

// withCommands are the documents whose commands are typed, with how many there are at least.
var withCommands = map[string]int{
	"README.md": 9, "cmd/gradwire/README.md": 31, "cluster/README.md": 19, "datasets/README.md": 2,
	"examples/README.md": 28,
}

func TestCommandsOfTheDocumentsWork(t *testing.T) {
	lengthy(t)
	for i, document := range slices.Sorted(maps.Keys(withCommands)) {
		t.Run(filepath.Dir(document), func(t *testing.T) {
			turns.Row(t, i, len(withCommands), 3)
			t.Parallel()
			commands := commandsOf(t, filepath.Join(source, document))
			if least := withCommands[document]; len(commands) < least {
				t.Fatalf("%d commands found, want at least %d", len(commands), least)
			}
			r := newReader(t)
			r.fresh = r.submitted
			r.names["10.0.0.1:7946"], r.names["10.0.0.2:7946"] = freeAddress(t), freeAddress(t)
			var left []string
			for _, s := range commands {
				if why, known := elsewhere[s.command]; known {
					left = append(left, fmt.Sprintf("%s (%s)", s.command, why))
					continue
				}
				if s.command == "gradwire identity init ca/" {
					r.export("GRADWIRE_JOIN= GRADWIRE_IDENTITY=") // other terminals, on other machines
				}
				r.enter(s)
			}
			t.Logf("%d commands; not typed: %s", len(commands), strings.Join(left, "; "))
		})
	}
}

func TestNotationOfTheDocumentsIsCarriedOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d.md")
	var text bytes.Buffer
	for _, line := range []string{
		"go on reading", "    go test ./...      # all", "    gradwire report DIR... [--out FILE]  # a page",
		"    gradwire a; gradwire b c", "    prints this", "      - and this", "", "    gradwire list x|y",
		"    gradwire n | s RUN | t    # x", "", "      - {not: this}", "    export A=1",
	} {
		fmt.Fprintln(&text, line)
	}
	write(t, path, text.String())
	var got []string
	for _, s := range commandsOf(t, path) {
		got = append(got, strings.Join(append([]string{s.command}, s.output...), "\n"))
	}
	want := []string{
		"go test ./...", "gradwire report DIR", "gradwire a", "gradwire b c\nprints this\n  - and this",
		"gradwire list x",
		"gradwire list y", "gradwire n", "gradwire s RUN", "gradwire t", "export A=1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant\n%q", got, want)
	}
}

func TestOutputIsComparedButForWhatChanges(t *testing.T) {
	const printed = "name  time\nfirst  1.2 s  \nsecond 3 s\nrecord in x-17\n"
	for _, x := range []struct {
		shown string
		same  bool
	}{
		{"", true},
		{"name  time\nfirst  1.2 s", true},
		{"name  time\nfirst  … s\nsecond … s", true},
		{"name  time\n…\nrecord in x-…", true},
		{"…\nrecord in x-17", true},
		{"…", true},
		{"name  time\nsecond 3 s", false},
		{"name  time\nfirst  1.3 s", false},
		{"first  1.2 s", false},
		{"…\nrecord in y-…", false},
		{"name  time\nfirst  1.2 s\nsecond 3 s\nrecord in x-17\nmore", false},
	} {
		if got := printedAs(strings.Split(x.shown, "\n")[:strings.Count(x.shown, "\n")+min(1, len(x.shown))],
			printed); got != x.same {
			t.Errorf("%q: %v", x.shown, got)
		}
	}
}
