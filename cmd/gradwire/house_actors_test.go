package main_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

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

// refused are functions, as path.Name, and methods, as path.(Name), that no actor calls.
var refused = map[string]string{
	"time.Now": noClock, "time.Since": noClock, "time.Until": noClock, "time.Sleep": noClock, "time.After": noClock,
	"time.AfterFunc": noClock, "time.NewTimer": noClock, "time.NewTicker": noClock, "time.Tick": noClock,
	"context.WithTimeout": noClock, "context.WithTimeoutCause": noClock,
	"context.WithDeadline": noClock, "context.WithDeadlineCause": noClock,
	"maps.All": noOrder, "maps.Keys": noOrder, "maps.Values": noOrder,
	"reflect.(MapKeys)": noOrder, "reflect.(MapRange)": noOrder,
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
	"sync/...": noLock, "net/...": noMachine, "os/...": noMachine, "syscall": noMachine, "crypto/rand": noChance,
	"hash/maphash": noChance,
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

// importedTypes loads all that sources import, at once: each call of go list takes long.
func importedTypes(t *testing.T, sources []string) map[string]*types.Package {
	t.Helper()
	imported := map[string]bool{}
	for _, source := range sources {
		file, err := parser.ParseFile(token.NewFileSet(), "sample.go", source, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			imported[path] = true
		}
	}
	loaded, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedTypes},
		sortedKeys(imported)...)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]*types.Package{}
	for _, p := range loaded {
		known[p.PkgPath] = p.Types
	}
	return known
}

// typeCheck checks a source that imports what is known.
func typeCheck(
	t *testing.T, source string, known map[string]*types.Package,
) (*token.FileSet, []*ast.File, *types.Info) {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "sample.go", source, 0)
	if err != nil {
		t.Fatal(err)
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
	samples := []struct{ source, want string }{
		{`func f() { go f() }`, "a go statement"},
		{`import "sync"; var m sync.Mutex`, "sync shares"},
		{`import "sync/atomic"; var n atomic.Int64`, "sync/atomic shares"},
		{`func f(a, b chan int) { select { case <-a: case <-b: } }`, "a select statement"},
		{`import "time"; var f = time.Now`, "time.Now"},
		{`import c "time"; func f() { c.AfterFunc(1, nil) }`, "time.AfterFunc"},
		{`import . "time"; func f() { Sleep(1) }`, "time.Sleep"},
		{`import "time"; func f(t time.Time) bool { return t.After(t) }`, ""},
		{`import ("context"; "time"); func f(c context.Context) { context.WithTimeout(c, time.Second) }`,
			"context.WithTimeout"},
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
		{`import ("maps"; "slices"); func f(m map[int]int) []int { return slices.Collect(maps.Values(m)) }`,
			"maps.Values"},
		{`import ("maps"; "slices"); func f(m map[int]int) { for _, k := range slices.Sorted(maps.Keys(m)) { _ = k } }`,
			""},
		{`func f(s []int, c [3]string, n int) { for range s { }; for range c { }; for range n { } }`, ""},
		{actorImport + `func f(c actor.Context) { c.SetReceiveTimeout(1) }`, "(SetReceiveTimeout)"},
		{actorImport + `func f(c actor.Context, p *actor.PID) { c.RequestFuture(p, 1, 5) }`, "(RequestFuture)"},
		{actorImport + `func f(c actor.Context) { g := c.RequestFuture; g(nil, 1, 5) }`, "(RequestFuture)"},
		{actorImport + `func f(c actor.Context, p *actor.PID) { c.ReenterAfter(c.RequestFuture(p, 1, -1), nil) }`, ""},
		{actorImport + `func f(c actor.Context, p *actor.PID) { c.StopFuture(p) }`, "(StopFuture)"},
		{actorImport + `func f(c actor.Context, p *actor.PID) { c.Send(p, 1); c.Stop(p) }`, ""},
	}
	var sources []string
	for _, sample := range samples {
		sources = append(sources, "package sample; "+sample.source)
	}
	known := importedTypes(t, sources)
	for i, sample := range samples {
		fset, files, info := typeCheck(t, sources[i], known)
		expectFault(t, sample.source, worldFaults(fset, files, info), sample.want)
	}
}
