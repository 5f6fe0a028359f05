package main_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

const (
	mailbox  = " github.com/asynkron/protoactor-go/actor"
	message  = " protos google.golang.org/protobuf/proto"
	protobuf = " google.golang.org/protobuf/..."
	gonum    = " gonum.org/v1/gonum/..."
	plot     = " gonum.org/v1/plot/..."
	xxhash   = " github.com/cespare/xxhash/v2"

	reader = "datasets datasets/input datasets/published"

	// architecture begins the row of an architecture. A new one costs its own room, one line in
	// cluster/catalog and one row here.
	architecture = "actors actors/state actors/train actors/peer cluster/plan/field nn/..." + gonum + mailbox + message
)

// table says what the code of each package, tests aside, may import beside the
// standard library. A path without a dot in its first element is the module's own;
// x/... stands for x and all below it. A row for x/... holds where no exact row does.
var table = map[string]string{
	"protos":          protobuf,
	"protos/generate": "github.com/bufbuild/protocompile/..." + protobuf,

	"nn":          "nn/kernel",
	"nn/kernel":   "",
	"nn/optim":    "nn/kernel cluster/plan/field",
	"nn/compress": "nn cluster/plan/field",

	"datasets":           "datasets/input",
	"datasets/input":     "",
	"datasets/hostile":   "datasets/input",
	"datasets/published": "datasets/input",
	"datasets/csv":       reader,
	"datasets/idx":       reader,
	"datasets/libsvm":    reader,
	"datasets/npy":       reader,
	"datasets/nslkdd":    reader,
	"datasets/synthetic": "datasets datasets/nslkdd",
	"datasets/partition": "datasets",

	"actors":                 "actors/state" + mailbox + message,
	"actors/state":           "protos" + protobuf,
	"actors/train":           "actors actors/state nn/... datasets" + mailbox + message,
	"actors/peer":            "actors actors/state actors/train nn/..." + gonum + mailbox + message,
	"actors/world":           "actors actors/state" + mailbox + message,
	"actors/world/worldtest": "actors actors/state actors/state/statetest actors/world protos" + mailbox + xxhash,
	"actors/coordinator":     "actors actors/state actors/world actors/train" + mailbox + message + xxhash,
	"actors/consistency":     "actors/state cluster/plan/field",
	"actors/session":         "actors/state",
	"actors/state/statetest": "actors/state protos" + protobuf,
	"actors/ps":              architecture + " actors/consistency actors/ps/shards",
	"actors/ps/shards":       "actors actors/state cluster/plan/field" + mailbox + message + xxhash,
	"actors/ps/table":        "actors actors/ps/shards actors/state nn/optim" + mailbox + message + xxhash,
	"actors/collective":      architecture + " actors/periodic",
	"actors/gossip":          architecture,
	"actors/gossiplearning":  architecture + " actors/periodic",
	"actors/innetwork":       architecture + " actors/session",
	"actors/federated":       architecture + " actors/periodic/...",
	"actors/gaia":            architecture + " actors/consistency",
	"actors/periodic":        "actors/state cluster/plan/field nn nn/optim",
	"actors/periodic/robust": "cluster/plan/field nn",
	"actors/dpsgd":           architecture,
	"actors/adpsgd":          architecture,
	"actors/local":           architecture,
	"actors/noloco":          architecture + " actors/periodic",

	"cluster/link": "actors/state cluster/plan/field cluster/link/fluid cluster/link/lines cluster/link/portable " +
		"cluster/link/rate cluster/queue",
	"cluster/link/fluid":    "actors/state cluster/link/rate cluster/queue",
	"cluster/link/portable": "",
	"cluster/topology":      "cluster/plan/field cluster/link/lines cluster/link/portable",
	"cluster/link/rate":     "cluster/plan/field cluster/link/lines",
	"cluster/link/lines":    "",
	"cluster/wire":          "actors/session protos" + protobuf + xxhash,
	"cluster/door": "actors actors/session actors/state cluster/wire cluster/link github.com/orcaman/concurrent-map " +
		"github.com/asynkron/protoactor-go/..." + message + xxhash,
	"cluster/queue":      "actors/state",
	"cluster/checkpoint": "actors/state cluster/live cluster/record/safetensors cluster/sim" + message,
	"cluster/sim": "actors actors/state actors/world cluster/door cluster/link cluster/queue " +
		"cluster/wire" + mailbox + message + xxhash,
	"cluster/sim/simtest": "actors actors/world actors/train cluster/link cluster/sim datasets nn nn/optim" +
		mailbox + message,
	"cluster/live": "actors actors/session actors/state actors/world cluster/live/rt cluster/door " +
		"cluster/link cluster/queue cluster/wire" + mailbox + message,
	"cluster/live/rt":         "cluster/queue golang.org/x/sys/unix",
	"cluster/mesh":            "actors/world cluster/live cluster/transport cluster/wire" + message,
	"cluster/refusal":         "",
	"cluster/request":         "cluster/refusal cluster/identity cluster/plan/... cluster/wire" + message,
	"cluster/transport/lane":  "cluster/queue cluster/wire",
	"cluster/transport/lobby": "",
	"cluster/transport": "cluster/queue cluster/transport/... cluster/wire cluster/identity cluster/naming " +
		"cluster/protocol golang.org/x/sys/unix" + message,
	"cluster/membership":    "cluster/identity cluster/naming cluster/protocol github.com/hashicorp/memberlist",
	"cluster/protocol":      "",
	"cluster/identity":      "cluster/naming",
	"cluster/naming":        "",
	"cluster/plan":          "cluster/plan/... cluster/link cluster/link/lines cluster/naming",
	"cluster/plan/syntax":   "go.yaml.in/yaml/v4",
	"cluster/plan/unit":     "cluster/plan/syntax",
	"cluster/plan/field":    "",
	"cluster/plan/settings": "cluster/plan/field cluster/plan/syntax cluster/plan/unit",
	"cluster/plan/weights":  "cluster/plan/settings cluster/plan/syntax cluster/record/cell cluster/link/lines",
	"cluster/catalog/sites": "cluster/link cluster/plan cluster/plan/syntax cluster/plan/unit",
	"cluster/catalog": "cluster/plan/... cluster/catalog/sites cluster/link cluster/link/rate cluster/topology " +
		"actors/... nn/... datasets/..." + message,
	"cluster/record/stats": gonum,

	"cluster/record": "actors actors/state actors/world cluster/record/cell cluster/record/choosing " +
		"cluster/record/goodput cluster/record/lockfile " +
		"cluster/record/safetensors cluster/record/stats cluster/record/strict",
	"cluster/record/cell":        "",
	"cluster/record/choosing":    "",
	"cluster/record/lockfile":    "",
	"cluster/record/safetensors": "cluster/record/strict",
	"cluster/record/strict":      "",
	"cluster/report":             "cluster/record cluster/record/stats",
	"cluster/report/diff":        "cluster/record cluster/record/safetensors cluster/report cluster/report/pairing",
	"cluster/report/pairing":     "cluster/plan/syntax cluster/record cluster/report",
	"cluster/report/pivot":       "cluster/record cluster/record/stats cluster/report",
	"cluster/report/figure": "cluster/record cluster/record/goodput cluster/record/stats cluster/report" +
		gonum + plot,
	"cluster/report/page": "cluster/record cluster/record/stats cluster/report cluster/report/figure " +
		"cluster/report/pairing cluster/report/pivot cluster/report/text",
	"cluster/report/reporttest": "cluster/record cluster/report",
	"cluster/record/recordtest": "cluster/record",
	"cluster/report/text":       "cluster/record cluster/record/stats cluster/report",

	"cluster/faults": "cluster/plan cluster/plan/syntax cluster/plan/unit cluster/link cluster/link/portable " +
		"cluster/record/goodput actors actors/state actors/world",
	"cluster/record/goodput": "",
	"cluster/drill": "actors/state cluster/checkpoint cluster/experiment cluster/faults cluster/plan cluster/catalog " +
		"cluster/record cluster/record/goodput cluster/link cluster/refusal cluster/report/figure " +
		"cluster/report cluster/report/text cluster/shelf cluster/sim actors actors/world actors/train nn nn/optim",
	"cluster/drill/programme": "cluster/drill cluster/experiment cluster/catalog cluster/shelf",
	"cluster/drill/processes": "",

	"cluster/saved": "cluster/catalog cluster/plan/syntax cluster/record cluster/record/safetensors " +
		"cluster/record/strict cluster/refusal datasets nn",
	"cluster/journal": "cluster/record actors actors/world actors/train protos",
	"cluster/shelf":   "cluster/plan/syntax cluster/catalog cluster/record datasets nn",
	"cluster/experiment": "cluster/plan/... cluster/catalog cluster/checkpoint cluster/faults cluster/sim " +
		"cluster/shelf cluster/traffic cluster/memory " +
		"cluster/live cluster/record cluster/record/choosing cluster/record/goodput " +
		"cluster/record/safetensors cluster/saved cluster/link cluster/link/rate " +
		"cluster/store cluster/topology cluster/wire cluster/refusal actors actors/state actors/world actors/train " +
		"actors/coordinator nn nn/kernel nn/optim datasets datasets/partition " +
		"protos" + mailbox + xxhash,
	"cluster/traffic": "cluster/record cluster/link",
	"cluster/archive": "",
	"cluster/memory":  "",
	"cluster/turns":   "",

	"cluster/registry/host": "cluster/registry go.etcd.io/bbolt/... go.etcd.io/raft/v3/raftpb" + message + xxhash,
	"cluster/registry":      "go.etcd.io/raft/v3/..." + message + xxhash,
	"cluster/store": "cluster/refusal cluster/record/lockfile cluster/record/strict github.com/minio/minio-go/v7 " +
		"github.com/minio/minio-go/v7/pkg/credentials golang.org/x/sync/errgroup",
	"cluster/store/storetest": "github.com/johannesboyne/gofakes3 github.com/johannesboyne/gofakes3/backend/s3mem",
	"cluster/holders": "cluster/archive cluster/checkpoint cluster/registry cluster/record cluster/record/strict cluster/refusal " +
		"cluster/request" + message + xxhash,
	"cluster/client": "cluster/archive cluster/request cluster/refusal cluster/transport cluster/identity " +
		"cluster/wire cluster/record" + message,
	"cluster/tables": "actors actors/ps/table cluster/catalog cluster/client" + mailbox + message,
	"cluster/resident": "cluster/request cluster/refusal cluster/transport cluster/membership cluster/identity " +
		"cluster/door cluster/wire cluster/plan/... actors actors/world" + mailbox + message,
	"cluster/submission": "cluster/archive cluster/experiment cluster/holders cluster/shelf " +
		"cluster/request cluster/refusal cluster/catalog cluster/record " +
		"cluster/identity nn/kernel" + message,
	"cluster/placement": "cluster/live cluster/membership cluster/plan",
	"cluster/node": "cluster/registry/... cluster/submission cluster/store cluster/holders cluster/journal " +
		"cluster/experiment cluster/shelf cluster/resident cluster/request cluster/checkpoint cluster/placement " +
		"cluster/memory cluster/refusal cluster/plan/... cluster/catalog cluster/live cluster/mesh cluster/record " +
		"cluster/record/lockfile cluster/protocol cluster/wire cluster/transport cluster/membership cluster/identity actors actors/world actors/train" +
		mailbox + message + xxhash,
	"cluster/driver/drivertest": "cluster/driver",
	"cluster/driver": "cluster/experiment cluster/node cluster/client cluster/request cluster/refusal " +
		"cluster/identity cluster/saved cluster/catalog datasets",
	"cluster/cli/answers": "cluster/driver cluster/record cluster/record/cell cluster/report/text",
	"cluster/cli/bundled": "cluster/driver cluster/plan/syntax",
	"cluster/cli/hint":    "",
	"cluster/cli/display": "cluster/driver github.com/schollz/progressbar/v3 golang.org/x/term",
	"cluster/cli/shell":   "github.com/spf13/cobra/...",
	"cluster/cli": "cluster/... actors/... nn/... datasets/... github.com/spf13/cobra/... github.com/spf13/pflag " +
		"golang.org/x/term" + message,

	"cmd/gradwire/...": "cluster/cli cluster/catalog examples github.com/spf13/cobra/... github.com/spf13/pflag",
	"examples/...":     "cluster/... actors/... nn/... datasets/..." + gonum + plot + mailbox + " protos" + protobuf,
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

// leaves import nothing, so importing them reaches nothing: the tags by which settings are declared
// stand on models, actors and links alike.
var leaves = []string{"cluster/plan/field"}

func TestImportsFollowTheTable(t *testing.T) {
	graph := map[string][]string{}
	var names []string
	for _, p := range loadHouse(t) {
		name := local(p.PkgPath)
		if name == "." {
			if len(p.GoFiles) > 0 {
				t.Errorf("%s: the module's root holds tests only", p.GoFiles[0])
			}
			continue
		}
		names = append(names, name)
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
	report(t, catalogFaults(graph))
	report(t, rowFaults(names))
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

// row returns the table's row for a package: the exact one, or the nearest tree's above it.
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

// rowFaults finds the rows of the table that hold for none of the module's packages.
func rowFaults(packages []string) (faults []string) {
	for _, pattern := range sortedKeys(table) {
		if !slices.ContainsFunc(packages, func(name string) bool { return within(pattern, name) }) {
			faults = append(faults, pattern+": the table has a row for this package, which does not exist")
		}
	}
	return faults
}

// importFaults checks the imports of a package's files against its row of the table.
func importFaults(name string, fset *token.FileSet, files []*ast.File) (faults []string) {
	allowed, ok := row(name)
	if !ok {
		const format = "%s: this package has no row: add %q with what it may import to the table in " +
			"house_imports_test.go"
		return []string{fmt.Sprintf(format, name, name)}
	}
	for _, file := range files {
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil || isStandard(imported) {
				continue
			}
			ok := slices.ContainsFunc(allowed, func(pattern string) bool { return within(pattern, local(imported)) })
			if !ok {
				const format = "%s: %s imports %s; the table in house_imports_test.go allows it only: %s"
				at := fset.Position(spec.Pos())
				faults = append(faults, fmt.Sprintf(format, at, name, local(imported), strings.Join(allowed, ", ")))
			}
		}
	}
	return faults
}

// isArchitecture reports whether a package's row begins as an architecture's does.
func isArchitecture(name string) bool { return strings.HasPrefix(table[name], architecture) }

// reachFaults finds, in a graph of the module's own imports, ways that never forbids, ways from the
// worlds or an architecture to another architecture, and packages beside the catalog that name an
// architecture: an architecture that had to be named elsewhere would cost more than its line there.
func reachFaults(graph map[string][]string) (faults []string) {
	for _, from := range sortedKeys(graph) {
		for _, way := range ways(graph, from) {
			to := way[len(way)-1]
			forbidden := isArchitecture(to) && (isArchitecture(from) || from == "cluster/sim" || from == "cluster/live")
			for _, rule := range never {
				forbidden = forbidden || within(rule.from, from) && within(rule.to, to) && !slices.Contains(leaves, to)
			}
			named := isArchitecture(to) && len(way) == 2
			if forbidden || named && from != "cluster/catalog" && !within("examples/...", from) {
				const format = "%s must not reach %s, but does: %s"
				faults = append(faults, fmt.Sprintf(format, from, to, strings.Join(way, " → ")))
			}
		}
	}
	return faults
}

// catalogFaults finds the architectures that the catalog does not know.
func catalogFaults(graph map[string][]string) (faults []string) {
	for _, name := range sortedKeys(table) {
		if isArchitecture(name) && !slices.Contains(graph["cluster/catalog"], name) {
			faults = append(faults, name+": cluster/catalog does not add this architecture")
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

const (
	noClock   = "meets the machine's clock: use Env.Now and Env.After"
	noChance  = "draws from a source that no seed governs: use Env.Rand"
	noFuture  = "waits on the machine's clock: send, and answer to the reply or to Env.After"
	noWindow  = "counts failures on the machine's clock: write a strategy that does not"
	noOrder   = "goes through a map in random order: range over slices.Sorted(maps.Keys(m))"
	noThread  = "runs beside the mailbox: use Env.Compute"
	noLock    = "shares memory with what runs beside: an actor shares by messages, and its world locks"
	noMachine = "meets the machine: an actor has only its Env"

	protoactor = "github.com/asynkron/protoactor-go/actor"
)

func TestImportFaultsAreFound(t *testing.T) {
	for _, sample := range []struct{ name, imported, want string }{
		{"cluster/link", "math", ""},
		{"cluster/link", module + "/actors", "imports actors"},
		{"actors/ps", module + "/nn/optim", ""},
		{"actors/ps", module + "/actors/gossip", "imports actors/gossip"},
		{"actors", module + "/actors/train", "imports actors/train"},
		{"actors/peer", "gonum.org/v1/gonum/mat", ""},
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
		faults := importFaults(sample.name, fset, []*ast.File{file})
		expectFault(t, sample.name+" imports "+sample.imported, faults, sample.want)
	}
}

func TestRowAndCatalogFaultsAreFound(t *testing.T) {
	var rooms, architectures []string
	for _, name := range sortedKeys(table) {
		rooms = append(rooms, strings.TrimSuffix(name, "/..."))
		if isArchitecture(name) {
			architectures = append(architectures, name)
		}
	}
	expectFault(t, "every room", rowFaults(rooms), "")
	fewer := slices.DeleteFunc(rooms, func(name string) bool { return name == "nn/kernel" })
	expectFault(t, "no nn/kernel", rowFaults(fewer), "nn/kernel: the table has a row")

	graph := map[string][]string{"cluster/catalog": architectures}
	expectFault(t, "every architecture", catalogFaults(graph), "")
	graph["cluster/catalog"] = architectures[1:]
	expectFault(t, "all but one", catalogFaults(graph), architectures[0]+": cluster/catalog does not add")
}

func TestReachFaultsAreFound(t *testing.T) {
	type imports = map[string][]string
	for _, sample := range []struct {
		graph imports
		want  string
	}{
		{imports{"cluster/driver": {"cluster/catalog", "cluster/sim"},
			"cluster/catalog": {"actors/ps", "actors/gossip"}},
			""},
		{imports{"cluster/sim": {"cluster/a"}, "cluster/a": {"cluster/catalog"}},
			"cluster/sim → cluster/a → cluster/catalog"},
		{imports{"cluster/live": {"actors/ps"}}, "cluster/live → actors/ps"},
		{imports{"cluster/cli": {"actors/ps"}}, "cluster/cli → actors/ps"},
		{imports{"examples/toy": {"actors/ps"}}, ""},
		{imports{"actors/ps": {"actors/train", "actors/gossip"}}, "actors/ps → actors/gossip"},
		{imports{"actors/train": {"cluster/wire"}}, "actors/train → cluster/wire"},
	} {
		expectFault(t, fmt.Sprint(sample.graph), reachFaults(sample.graph), sample.want)
	}
}
