package gradwire_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/go/packages"
)

// These tests hold the house to its rules where a compiler and a linter cannot: who
// may import whom, what an actor may do, what folders and files may be called. Each
// check is a function from source to faults; the tests at the end show that it finds them.

const (
	module = "github.com/gradwire/gradwire"

	mailbox  = " github.com/asynkron/protoactor-go/actor"
	message  = " protos google.golang.org/protobuf/proto"
	protobuf = " google.golang.org/protobuf/..."
	gonum    = " gonum.org/v1/gonum/..."
	plot     = " gonum.org/v1/plot/..."
	xxhash   = " github.com/cespare/xxhash/v2"

	reader = "datasets datasets/input datasets/published"

	architecture = "actors actors/train actors/session nn/..." + gonum + mailbox + message
)

// table says what the code of each package, tests aside, may import beside the
// standard library. A path without a dot in its first element is the module's own;
// x/... stands for x and all below it. A row for x/... holds where no exact row does.
var table = map[string]string{
	"protos":          protobuf,
	"protos/generate": "github.com/bufbuild/protocompile/..." + protobuf,

	"nn":          "nn/kernel" + gonum,
	"nn/kernel":   gonum,
	"nn/optim":    "nn",
	"nn/compress": "nn",

	"datasets":           "datasets/input",
	"datasets/input":     "",
	"datasets/hostile":   "datasets/input",
	"datasets/published": "datasets/input",
	"datasets/csv":       reader,
	"datasets/idx":       reader,
	"datasets/libsvm":    reader,
	"datasets/npy":       reader,
	"datasets/nslkdd":    reader,
	"datasets/synthetic": "datasets",
	"datasets/partition": "datasets",

	"actors":             mailbox + message,
	"actors/session":     "actors" + mailbox + message,
	"actors/train":       "actors nn/... datasets" + gonum + mailbox + message,
	"actors/coordinator": "actors actors/train" + mailbox + message + xxhash,
	"actors/ps":          architecture,
	"actors/collective":  architecture,
	"actors/gossip":      architecture,
	"actors/dpsgd":       architecture,
	"actors/adpsgd":      architecture,
	"actors/federated":   architecture,
	"actors/local":       architecture,

	"cluster/link":          "",
	"cluster/wire":          "protos" + protobuf + xxhash,
	"cluster/door":          "actors cluster/wire cluster/link" + mailbox + message + xxhash,
	"cluster/sim":           "actors cluster/door cluster/link cluster/wire" + mailbox + message + xxhash,
	"cluster/sim/simtest":   "actors actors/train cluster/link cluster/sim datasets nn nn/optim" + mailbox + message,
	"cluster/live":          "actors cluster/door cluster/link cluster/wire cluster/transport cluster/membership golang.org/x/sys/..." + mailbox + message + xxhash,
	"cluster/resident":      "actors cluster/door" + mailbox + message,
	"cluster/transport":     "cluster/wire cluster/identity golang.org/x/sys/unix" + message,
	"cluster/membership":    "cluster/identity github.com/hashicorp/memberlist",
	"cluster/identity":      "",
	"cluster/plan":          "cluster/plan/...",
	"cluster/plan/syntax":   "github.com/goccy/go-yaml/...",
	"cluster/plan/unit":     "cluster/plan/syntax",
	"cluster/plan/settings": "cluster/plan/syntax cluster/plan/unit",
	"cluster/catalog":       "cluster/plan/... cluster/link actors/... nn/... datasets/..." + message,
	"cluster/record":        "actors cluster/record/stats",
	"cluster/record/stats":  gonum,
	"cluster/report":        "cluster/record cluster/record/stats" + gonum + plot,
	"cluster/driver": "cluster/plan/... cluster/catalog cluster/sim cluster/live cluster/resident cluster/record cluster/report cluster/link cluster/door cluster/wire " +
		"cluster/transport cluster/membership cluster/identity actors actors/train actors/coordinator nn nn/kernel datasets" + mailbox + message + xxhash,
	"cluster/cli": "cluster/... actors/... nn/... datasets/... github.com/spf13/cobra/... github.com/spf13/pflag github.com/schollz/progressbar/v3 golang.org/x/term" + message,

	"cmd/gradwire": "cluster/cli cluster/catalog",
	"examples/...": "cluster/... actors/... nn/... datasets/..." + gonum + plot + mailbox + " protos" + protobuf,
}

// never lists what a package may not reach, not even through others.
var never = []struct{ from, to string }{
	{"cluster/sim", "cluster/catalog"},
	{"cluster/live", "cluster/catalog"},
	{"cluster/plan", "cluster/catalog"},
	{"actors/...", "cluster/..."},
	{"nn/...", "actors/..."},
	{"datasets/...", "actors/..."},
	{"actors/...", "cmd/..."},
	{"cluster/...", "cmd/..."},
	{"actors/...", "examples/..."},
	{"cluster/...", "examples/..."},
}

// notArchitectures are the packages below actors that every architecture shares.
var notArchitectures = []string{"actors", "actors/train", "actors/session", "actors/coordinator"}

// topLevel are the folders of the module's root, beside those that begin with a dot.
var topLevel = []string{"actors", "cluster", "cmd", "datasets", "examples", "nn", "protos"}

// emptyNames are folder names that say nothing about what is inside.
var emptyNames = []string{"internal", "pkg", "util", "utils", "common", "helper", "helpers", "misc"}

// house loads every package of the module once, with types.
var house = sync.OnceValues(func() ([]*packages.Package, error) {
	const mode = packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedModule |
		packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo
	loaded, err := packages.Load(&packages.Config{Mode: mode}, "./...")
	if err != nil {
		return nil, err
	}
	for _, p := range loaded {
		for _, e := range p.Errors {
			if len(p.GoFiles) > 0 {
				return nil, e
			}
		}
	}
	return loaded, nil
})

func loadHouse(t *testing.T) []*packages.Package {
	t.Helper()
	if testing.Short() {
		t.Skip("loads and type-checks the whole module")
	}
	loaded, err := house()
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func report(t *testing.T, faults []string) {
	t.Helper()
	for _, fault := range faults {
		t.Error(fault)
	}
}

func TestImportsFollowTheTable(t *testing.T) {
	graph := map[string][]string{}
	for _, p := range loadHouse(t) {
		name := local(p.PkgPath)
		if name == "." {
			if len(p.GoFiles) > 0 {
				t.Errorf("%s: the module's root holds tests only", p.GoFiles[0])
			}
			continue
		}
		fset, files, err := withIgnored(p)
		if err != nil {
			t.Fatal(err)
		}
		report(t, importFaults(name, fset, files))
		for _, imported := range p.Imports {
			if imported.PkgPath != local(imported.PkgPath) {
				graph[name] = append(graph[name], local(imported.PkgPath))
			}
		}
	}
	report(t, reachFaults(graph))
}

// withIgnored returns p's files and, parsed for their imports, those that another
// platform or build tag would compile.
func withIgnored(p *packages.Package) (*token.FileSet, []*ast.File, error) {
	files := slices.Clone(p.Syntax)
	for _, name := range p.IgnoredFiles {
		if filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(p.Fset, name, nil, parser.ImportsOnly)
		if err != nil {
			return nil, nil, err
		}
		files = append(files, file)
	}
	return p.Fset, files, nil
}

// local cuts the module's path off an import path; others it returns unchanged.
func local(importPath string) string {
	if importPath == module {
		return "."
	}
	return strings.TrimPrefix(importPath, module+"/")
}

// within reports whether a package matches a pattern, which is a path or ends in /...
func within(pattern, name string) bool {
	if tree, ok := strings.CutSuffix(pattern, "/..."); ok {
		return name == tree || strings.HasPrefix(name, tree+"/")
	}
	return name == pattern
}

// row returns the table's row for a package: the exact one, or that of the nearest tree above it.
func row(name string) (allowed []string, ok bool) {
	if text, ok := table[name]; ok {
		return strings.Fields(text), true
	}
	for above := name; above != "."; above = path.Dir(above) {
		if text, ok := table[above+"/..."]; ok {
			return strings.Fields(text), true
		}
	}
	return nil, false
}

// importFaults checks the imports of a package's files against its row of the table.
func importFaults(name string, fset *token.FileSet, files []*ast.File) (faults []string) {
	allowed, ok := row(name)
	if !ok {
		return []string{fmt.Sprintf("%s: this package has no row: add %q with what it may import to the table in house_test.go, and its depguard rule to .golangci.yaml", name, name)}
	}
	for _, file := range files {
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil || isStandard(imported) {
				continue
			}
			ok := slices.ContainsFunc(allowed, func(pattern string) bool { return within(pattern, local(imported)) })
			if !ok {
				faults = append(faults, fmt.Sprintf("%s: %s imports %s; the table in house_test.go allows it only: %s",
					fset.Position(spec.Pos()), name, local(imported), strings.Join(allowed, ", ")))
			}
		}
	}
	return faults
}

// isStandard reports whether an import path belongs to the standard library.
func isStandard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}

// reachFaults finds, in a graph of the module's own imports, ways that never forbids
// and ways from the worlds or an architecture to another architecture.
func reachFaults(graph map[string][]string) (faults []string) {
	isArchitecture := func(name string) bool {
		return within("actors/...", name) && !slices.Contains(notArchitectures, name)
	}
	for _, from := range sortedKeys(graph) {
		for _, way := range ways(graph, from) {
			to := way[len(way)-1]
			forbidden := isArchitecture(to) && (isArchitecture(from) || from == "cluster/sim" || from == "cluster/live")
			for _, rule := range never {
				forbidden = forbidden || within(rule.from, from) && within(rule.to, to)
			}
			if forbidden {
				faults = append(faults, fmt.Sprintf("%s must not reach %s, but does: %s", from, to, strings.Join(way, " → ")))
			}
		}
	}
	return faults
}

// ways returns a shortest way from a package to each one that it reaches.
func ways(graph map[string][]string, from string) (found [][]string) {
	seen := map[string]bool{from: true}
	queue := [][]string{{from}}
	for len(queue) > 0 {
		way := queue[0]
		queue = queue[1:]
		for _, to := range slices.Sorted(slices.Values(graph[way[len(way)-1]])) {
			if !seen[to] {
				seen[to] = true
				longer := append(slices.Clone(way), to)
				found, queue = append(found, longer), append(queue, longer)
			}
		}
	}
	return found
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

type depguardRule struct {
	ListMode string   `yaml:"list-mode"`
	Files    []string `yaml:"files"`
	Allow    []string `yaml:"allow"`
}

func TestDepguardRulesAreThoseOfTheTable(t *testing.T) {
	text, err := os.ReadFile(".golangci.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Linters struct {
			Settings struct {
				Depguard struct{ Rules map[string]depguardRule }
			}
		}
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(depguardRules(), config.Linters.Settings.Depguard.Rules); diff != "" {
		t.Errorf("depguard's rules in .golangci.yaml (+) are not those of the table in house_test.go (-):\n%s", diff)
	}
}

// depguardRules writes the table in depguard's terms, where a path is a prefix unless it ends in $.
func depguardRules() map[string]depguardRule {
	rules := map[string]depguardRule{}
	for _, name := range sortedKeys(table) {
		files := "${base-path}/" + name + "/*.go"
		if tree, ok := strings.CutSuffix(name, "/..."); ok {
			files = "${base-path}/" + tree + "/**"
		}
		allow := []string{"$gostd"}
		for _, entry := range strings.Fields(table[name]) {
			if isStandard(entry) {
				entry = module + "/" + entry
			}
			if tree, ok := strings.CutSuffix(entry, "/..."); ok {
				allow = append(allow, tree+"$", tree+"/")
			} else {
				allow = append(allow, entry+"$")
			}
		}
		key := strings.ReplaceAll(strings.TrimSuffix(name, "/..."), "/", "-")
		rules[key] = depguardRule{ListMode: "strict", Files: []string{files, "!$test"}, Allow: allow}
	}
	return rules
}

func TestActorsMeetTheWorldOnlyThroughEnv(t *testing.T) {
	for _, p := range loadHouse(t) {
		if !within("actors/...", local(p.PkgPath)) {
			continue
		}
		for _, name := range p.IgnoredFiles {
			if filepath.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") {
				t.Errorf("%s: an actor is the same on every platform, without build constraints", name)
			}
		}
		report(t, worldFaults(p.Fset, p.Syntax, p.TypesInfo))
	}
}

const (
	noClock   = "meets the machine's clock: use Env.Now and Env.After"
	noChance  = "draws from a source that no seed governs: use Env.Rand"
	noFuture  = "waits on the machine's clock: send, and answer to the reply or to Env.After"
	noWindow  = "counts failures on the machine's clock: write a strategy that does not"
	noOrder   = "goes through a map in random order: range over slices.Sorted(maps.Keys(m))"
	noThread  = "runs beside the mailbox: use Env.Compute"
	noMachine = "meets the machine: an actor has only its Env"

	protoactor = "github.com/asynkron/protoactor-go/actor"
)

// refused are functions, as path.Name, and methods, as path.(Name), that no actor calls.
var refused = map[string]string{
	"time.Now": noClock, "time.Since": noClock, "time.Until": noClock, "time.Sleep": noClock, "time.After": noClock,
	"time.AfterFunc": noClock, "time.NewTimer": noClock, "time.NewTicker": noClock, "time.Tick": noClock,
	"context.WithTimeout": noClock, "context.WithTimeoutCause": noClock,
	"context.WithDeadline": noClock, "context.WithDeadlineCause": noClock,
	"maps.All": noOrder, "maps.Keys": noOrder, "maps.Values": noOrder,
	"sync.(Range)": noOrder, "reflect.(MapKeys)": noOrder, "reflect.(MapRange)": noOrder,
	"sync.(Go)":                                   noThread,
	protoactor + ".NewFuture":                     noFuture,
	protoactor + ".(RequestFuture)":               noFuture,
	protoactor + ".(StopFuture)":                  noFuture,
	protoactor + ".(PoisonFuture)":                noFuture,
	protoactor + ".(Result)":                      noFuture,
	protoactor + ".(Wait)":                        noFuture,
	protoactor + ".(SetReceiveTimeout)":           noClock,
	protoactor + ".NewExponentialBackoffStrategy": noWindow,
	protoactor + ".NewOneForOneStrategy":          noWindow,
	protoactor + ".NewAllForOneStrategy":          noWindow,
	protoactor + ".(NumberOfFailures)":            noWindow,
}

// refusedImports are packages that an actor has no use for but to leave its world.
var refusedImports = map[string]string{
	"net/...": noMachine, "os/...": noMachine, "syscall": noMachine, "crypto/rand": noChance, "hash/maphash": noChance,
}

// worldFaults finds where an actor's code leaves its world: threads, the machine's
// clock, randomness without a seed, the order of a map, network, files.
func worldFaults(fset *token.FileSet, files []*ast.File, info *types.Info) (faults []string) {
	excused := map[*ast.Ident]bool{}
	visit := func(node ast.Node) bool {
		why := ""
		switch node := node.(type) {
		case *ast.ImportSpec:
			why = refusedImport(node)
		case *ast.GoStmt:
			why = "a go statement " + noThread
		case *ast.SelectStmt:
			why = "a select statement picks at random: an actor waits for nothing but messages"
		case *ast.RangeStmt:
			if isMap(info.TypeOf(node.X)) {
				why = "this range " + noOrder
			}
		case *ast.CallExpr:
			excuse(node, info, excused)
		case *ast.Ident:
			if !excused[node] {
				why = refusedUse(info.Uses[node])
			}
		}
		if why != "" {
			faults = append(faults, fmt.Sprintf("%s: %s", fset.Position(node.Pos()), why))
		}
		return true
	}
	for _, file := range files {
		ast.Inspect(file, visit)
	}
	return faults
}

func refusedImport(spec *ast.ImportSpec) string {
	imported, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return err.Error()
	}
	for _, pattern := range sortedKeys(refusedImports) {
		if within(pattern, imported) {
			return imported + " " + refusedImports[pattern]
		}
	}
	return ""
}

// refusedUse says why an actor may not use an object, or nothing.
func refusedUse(object types.Object) string {
	function, ok := object.(*types.Func)
	if !ok || function.Pkg() == nil {
		return ""
	}
	key := nameOf(function)
	if why, ok := refused[key]; ok {
		return key + " " + why
	}
	isRandom := within("math/rand/...", function.Pkg().Path()) && function.Signature().Recv() == nil
	if isRandom && !strings.HasPrefix(function.Name(), "New") {
		return key + " " + noChance
	}
	return ""
}

// nameOf writes a function as in refused.
func nameOf(function *types.Func) string {
	if function.Signature().Recv() != nil {
		return function.Pkg().Path() + ".(" + function.Name() + ")"
	}
	return function.Pkg().Path() + "." + function.Name()
}

// excuse notes what is harmless inside this call: the keys or values of a map that
// it sorts, and a future that it gives no timeout (-1).
func excuse(call *ast.CallExpr, info *types.Info, excused map[*ast.Ident]bool) {
	callee, function := called(call, info)
	if function == nil || len(call.Args) == 0 {
		return
	}
	switch nameOf(function) {
	case "slices.Sorted", "slices.SortedFunc", "slices.SortedStableFunc":
		if inner, ok := ast.Unparen(call.Args[0]).(*ast.CallExpr); ok {
			name, source := called(inner, info)
			if source != nil && source.Pkg() != nil && source.Pkg().Path() == "maps" {
				excused[name] = true
			}
		}
	case protoactor + ".(RequestFuture)", protoactor + ".NewFuture":
		timeout := info.Types[call.Args[len(call.Args)-1]].Value
		excused[callee] = timeout != nil && timeout.ExactString() == "-1"
	}
}

// called returns the function that a call names, and where; nil if it calls a value.
func called(call *ast.CallExpr, info *types.Info) (*ast.Ident, *types.Func) {
	callee := ast.Unparen(call.Fun)
	switch instance := callee.(type) {
	case *ast.IndexExpr:
		callee = instance.X
	case *ast.IndexListExpr:
		callee = instance.X
	}
	if selector, ok := callee.(*ast.SelectorExpr); ok {
		callee = selector.Sel
	}
	name, ok := callee.(*ast.Ident)
	if !ok {
		return nil, nil
	}
	function, ok := info.Uses[name].(*types.Func)
	if !ok || function.Pkg() == nil {
		return name, nil
	}
	return name, function
}

// isMap reports whether a type is a map, or a type parameter that can be one.
func isMap(t types.Type) bool {
	if t == nil {
		return false
	}
	if constraint, ok := t.Underlying().(*types.Interface); ok {
		for embedded := range constraint.EmbeddedTypes() {
			union, ok := embedded.(*types.Union)
			for i := 0; ok && i < union.Len(); i++ {
				if isMap(union.Term(i).Type()) {
					return true
				}
			}
			if !ok && isMap(embedded) {
				return true
			}
		}
		return false
	}
	_, ok := t.Underlying().(*types.Map)
	return ok
}

// tree returns the files of the module as slash-separated paths: all but those in
// folders that begin with a dot (.ci is looked into), and but those that git ignores, where there is git.
func tree(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && name != ".ci" && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case entry.Type().IsRegular():
			files = append(files, filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(".git"); err != nil {
		return files
	}
	list, err := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Logf("looking at ignored files too: git ls-files: %v", err)
		return files
	}
	known := map[string]bool{}
	for name := range strings.SplitSeq(string(list), "\x00") {
		known[name] = true
	}
	return slices.DeleteFunc(files, func(name string) bool { return !known[name] })
}

func TestFoldersAreThoseOfTheHouse(t *testing.T) {
	report(t, folderFaults(tree(t)))
}

// folderFaults checks the top level and the names of all folders.
func folderFaults(files []string) (faults []string) {
	folders := map[string]bool{}
	for _, name := range files {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			folders[dir] = true
		}
	}
	for _, want := range topLevel {
		if !folders[want] {
			faults = append(faults, want+": this top-level folder is missing")
		}
	}
	for _, dir := range sortedKeys(folders) {
		isTop := !strings.Contains(dir, "/") && !strings.HasPrefix(dir, ".")
		if isTop && !slices.Contains(topLevel, dir) {
			faults = append(faults, fmt.Sprintf("%s: top-level folders are %s", dir, strings.Join(topLevel, ", ")))
		}
		if slices.Contains(emptyNames, path.Base(dir)) {
			faults = append(faults, dir+": name a folder after what it is for")
		}
	}
	return faults
}

func TestFilesHoldNoPostponedWorkAndNoPathOfOneMachine(t *testing.T) {
	for _, name := range tree(t) {
		text, err := os.ReadFile(filepath.FromSlash(name))
		if err != nil {
			t.Fatal(err)
		}
		report(t, textFaults(name, text))
	}
}

var (
	postponed = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|X` + `XX|HA` + `CK)\b`)
	ofMachine = regexp.MustCompile("(^|[\\s\"'`=:(<\\[,]|file://)/(work|root|home|tmp)(/|[\"'`\\s)\\],;:]|$)")
)

// textFaults finds, line by line, marks of postponed work in Go, YAML and Markdown
// and absolute paths of somebody's machine in any text.
func textFaults(name string, text []byte) (faults []string) {
	if bytes.IndexByte(text[:min(len(text), 8000)], 0) >= 0 {
		return nil
	}
	marked := slices.Contains([]string{".go", ".yaml", ".yml", ".md"}, path.Ext(name))
	number := 0
	for line := range bytes.Lines(text) {
		number++
		line = bytes.TrimRight(line, "\r\n")
		if found := postponed.Find(line); marked && found != nil {
			faults = append(faults, fmt.Sprintf("%s:%d: %s: do it now, or drop it", name, number, found))
		}
		if found := ofMachine.Find(line); found != nil {
			faults = append(faults, fmt.Sprintf("%s:%d: %s is a path of one machine", name, number, bytes.TrimSpace(found)))
		}
	}
	return faults
}

// typeCheck checks a source whose imports may be any of the standard library and
// protoactor's actor package.
func typeCheck(t *testing.T, source string) (*token.FileSet, []*ast.File, *types.Info) {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "sample.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, imported)
	}
	known := map[string]*types.Package{}
	if len(paths) > 0 {
		loaded, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedTypes}, paths...)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range loaded {
			known[p.PkgPath] = p.Types
		}
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: importerFunc(func(name string) (*types.Package, error) {
		if known[name] == nil {
			return nil, fmt.Errorf("no package %s", name)
		}
		return known[name], nil
	})}
	if _, err := config.Check("sample", fset, []*ast.File{file}, info); err != nil {
		t.Fatal(err)
	}
	return fset, []*ast.File{file}, info
}

type importerFunc func(name string) (*types.Package, error)

func (f importerFunc) Import(name string) (*types.Package, error) { return f(name) }

func TestWorldFaultsAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("loads the export data of the samples' imports")
	}
	const actorImport = `import "github.com/asynkron/protoactor-go/actor"; `
	for _, sample := range []struct{ source, want string }{
		{`func f() { go f() }`, "a go statement"},
		{`import "sync"; func f(g *sync.WaitGroup) { g.Go(func() {}) }`, "sync.(Go)"},
		{`func f(a, b chan int) { select { case <-a: case <-b: } }`, "a select statement"},
		{`import "time"; var f = time.Now`, "time.Now"},
		{`import c "time"; func f() { c.AfterFunc(1, nil) }`, "time.AfterFunc"},
		{`import . "time"; func f() { Sleep(1) }`, "time.Sleep"},
		{`import "time"; func f(t time.Time) bool { return t.After(t) }`, ""},
		{`import ("context"; "time"); func f(c context.Context) { context.WithTimeout(c, time.Second) }`, "context.WithTimeout"},
		{`import "math/rand/v2"; func f() int { return rand.IntN(3) }`, "math/rand/v2.IntN"},
		{`import "math/rand"; func f() float64 { return rand.Float64() }`, "math/rand.Float64"},
		{`import "math/rand/v2"; func f() int { return rand.New(rand.NewPCG(1, 2)).IntN(3) }`, ""},
		{`import "crypto/rand"; var f = rand.Reader`, "crypto/rand"},
		{`import "os/exec"; var f = exec.Command`, "os/exec"},
		{`import "net"; var f net.Conn`, "net meets"},
		{`func f(m map[int]int) { for range m { } }`, "this range"},
		{`type set map[int]bool; func f(m set) { for k := range m { _ = k } }`, "this range"},
		{`func f[M ~map[int]V, V any](m M) { for k := range m { _ = k } }`, "this range"},
		{`import "maps"; func f(m map[int]int) { for k := range maps.Keys(m) { _ = k } }`, "maps.Keys"},
		{`import ("maps"; "slices"); func f(m map[int]int) []int { return slices.Collect(maps.Values(m)) }`, "maps.Values"},
		{`import ("maps"; "slices"); func f(m map[int]int) { for _, k := range slices.Sorted(maps.Keys(m)) { _ = k } }`, ""},
		{`func f(s []int, c [3]string, n int) { for range s { }; for range c { }; for range n { } }`, ""},
		{`import "sync"; func f(m *sync.Map) { m.Range(nil) }`, "sync.(Range)"},
		{actorImport + `func f(c actor.Context) { c.SetReceiveTimeout(1) }`, "(SetReceiveTimeout)"},
		{actorImport + `func f(c actor.Context, p *actor.PID) { c.RequestFuture(p, 1, 5) }`, "(RequestFuture)"},
		{actorImport + `func f(c actor.Context) { g := c.RequestFuture; g(nil, 1, 5) }`, "(RequestFuture)"},
		{actorImport + `func f(c actor.Context, p *actor.PID) { c.ReenterAfter(c.RequestFuture(p, 1, -1), nil) }`, ""},
		{actorImport + `func f(c actor.Context, p *actor.PID) { c.StopFuture(p) }`, "(StopFuture)"},
		{actorImport + `func f(c actor.Context, p *actor.PID) { c.Send(p, 1); c.Stop(p) }`, ""},
	} {
		fset, files, info := typeCheck(t, "package sample; "+sample.source)
		expectFault(t, sample.source, worldFaults(fset, files, info), sample.want)
	}
}

// expectFault expects one fault that contains want, or none if want is empty.
func expectFault(t *testing.T, sample string, faults []string, want string) {
	t.Helper()
	switch {
	case want == "" && len(faults) > 0:
		t.Errorf("%s\n\tharmless, but reported: %q", sample, faults)
	case want != "" && (len(faults) != 1 || !strings.Contains(faults[0], want)):
		t.Errorf("%s\n\twant one fault with %q, got %q", sample, want, faults)
	}
}

func TestImportFaultsAreFound(t *testing.T) {
	for _, sample := range []struct{ name, imported, want string }{
		{"cluster/link", "math", ""},
		{"cluster/link", module + "/actors", "imports actors"},
		{"actors/ps", module + "/nn/optim", ""},
		{"actors/ps", module + "/actors/gossip", "imports actors/gossip"},
		{"actors", module + "/actors/train", "imports actors/train"},
		{"nn", "gonum.org/v1/gonum/blas", ""},
		{"nn", "gonum.org/v1/plot", "imports gonum.org/v1/plot"},
		{"examples/toy/deep", module + "/cluster/driver", ""},
		{"examples/toy", module + "/cmd/gradwire", "imports cmd/gradwire"},
		{"cluster/unheard", "math", "has no row"},
	} {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, "sample.go", "package sample; import "+strconv.Quote(sample.imported), 0)
		if err != nil {
			t.Fatal(err)
		}
		expectFault(t, sample.name+" imports "+sample.imported, importFaults(sample.name, fset, []*ast.File{file}), sample.want)
	}
}

func TestReachFaultsAreFound(t *testing.T) {
	for _, sample := range []struct {
		graph map[string][]string
		want  string
	}{
		{map[string][]string{"cluster/driver": {"cluster/catalog", "cluster/sim"}, "cluster/catalog": {"actors/ps", "actors/gossip"}}, ""},
		{map[string][]string{"cluster/sim": {"cluster/a"}, "cluster/a": {"cluster/catalog"}}, "cluster/sim → cluster/a → cluster/catalog"},
		{map[string][]string{"cluster/live": {"actors/ps"}}, "cluster/live → actors/ps"},
		{map[string][]string{"actors/ps": {"actors/train", "actors/gossip"}}, "actors/ps → actors/gossip"},
		{map[string][]string{"actors/train": {"cluster/wire"}}, "actors/train → cluster/wire"},
	} {
		expectFault(t, fmt.Sprint(sample.graph), reachFaults(sample.graph), sample.want)
	}
}

func TestFolderAndTextFaultsAreFound(t *testing.T) {
	var whole []string
	for _, dir := range topLevel {
		whole = append(whole, dir+"/x.go")
	}
	for _, sample := range []struct{ file, want string }{
		{".ci/run", ""}, {"go.mod", ""}, {"nn/kernel/x.s", ""},
		{"tools/x.go", "tools: top-level"}, {"nn/util/x.go", "nn/util: name"}, {"cluster/internal/deep/x.go", "cluster/internal: name"},
	} {
		expectFault(t, sample.file, folderFaults(append(slices.Clone(whole), sample.file)), sample.want)
	}
	expectFault(t, "no nn", folderFaults(slices.DeleteFunc(slices.Clone(whole), func(name string) bool { return within("nn/...", name) })), "nn: this top-level")

	mark, home := "TO"+"DO", "/"+"home/me/x"
	for _, sample := range []struct{ name, text, want string }{
		{"a.go", "x := 1\n// " + mark + " later\n", "a.go:2"}, {"a.md", "FIX" + "ME", "a.md:1"}, {"a.yaml", "# HA" + "CK", "a.yaml:1"},
		{"a.sh", "# " + mark, ""}, {"a.go", "var " + mark + "s int", ""},
		{"run", "cd " + home, "run:1"}, {"a.md", "see `" + home + "`", "a.md:1"}, {"a.yaml", "out: file://" + home, "a.yaml:1"},
		{"a.go", "x := n*(a+b)" + "/" + "work", ""}, {"a.md", "example.com" + home, ""}, {"a.bin", "\x00 " + home, ""},
	} {
		expectFault(t, sample.name+": "+sample.text, textFaults(sample.name, []byte(sample.text)), sample.want)
	}
}
