package cli_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/cli"
)

var update = flag.Bool("update", false, "rewrite the expected messages in testdata")

// sideBySide is how many tests run at a time of those that mostly wait for other processes.
const sideBySide = 4

// asProgram makes the test's own executable behave as gradwire.
const asProgram = "GRADWIRE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		cli.Main(tallies())
	}
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(sideBySide)); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// asGradwire is the command line under its usual name, whatever the tests' executable is called.
func asGradwire(c *catalog.Catalog) cli.Program { return cli.Program{Name: "gradwire", Catalog: c} }

// gradwire runs a command within this process.
func gradwire(t testing.TB, args ...string) (code int, out, errs string) {
	t.Helper()
	for _, name := range []string{"GRADWIRE_DATA", "XDG_CACHE_HOME", "HOME", "LocalAppData"} {
		t.Setenv(name, "") // no data sets but those that the test puts somewhere
	}
	return gradwireHere(args...)
}

// gradwireHere runs a command within this process, with the environment that the test has made.
func gradwireHere(args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = asGradwire(catalog.Default()).Run(context.Background(), args, &o, &e)
	return code, o.String(), e.String()
}

func expectCode(t testing.TB, want, got int, errs string) {
	t.Helper()
	if got != want {
		t.Fatalf("exit code %d, want %d: %s", got, want, errs)
	}
}

// expectFile compares a text with a file of testdata.
func expectFile(t testing.TB, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil { //nolint:gosec // part of the source
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// small is a plan of one point that takes a fraction of a second.
const small = `name: small
data: {set: synthetic-traffic, samples: 1500}
model: {kind: mlp, layers: [93, 8, 5]}
train: {batch: 32, optimizer: {kind: sgd, rate: 0.1}}
architecture: {kind: parameter-server}
nodes:
  - {name: server, role: server}
  - {name: near, role: worker, compute: {step: 5ms}}
  - {name: far, role: worker, compute: {step: 5ms}}
network:
  links:
    - {between: [server, near], delay: 1ms}
    - {between: [server, far], delay: 50ms}
evaluate: {every: 0.5 epochs}
stop: {epochs: 2}
`

// enter makes a folder with a plan the working one.
func enter(t testing.TB, plan string) {
	t.Helper()
	t.(interface{ Chdir(dir string) }).Chdir(t.TempDir())
	write(t, "plan.yaml", plan)
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func edit(t testing.TB, text, old, by string) string {
	t.Helper()
	if strings.Count(text, old) != 1 {
		t.Fatalf("%q occurs %d times", old, strings.Count(text, old))
	}
	return strings.Replace(text, old, by, 1)
}

// lengthy skips a test that takes long by its nature, because it builds programs or waits for what
// real processes do: CI runs those by setting GRADWIRE_LENGTHY.
func lengthy(t *testing.T) {
	t.Helper()
	if os.Getenv("GRADWIRE_LENGTHY") == "" {
		t.Skip("takes long; GRADWIRE_LENGTHY=1 runs it")
	}
}
