// Command generate turns the .proto files of a folder into Go, without protoc: protocompile
// parses them, and the generator behind protoc-gen-go writes the code.
//
//	generate [-check] [DIR]
//
// DIR (default: the working directory) holds the .proto files; each x.proto gets its x.pb.go
// beside it. Imports between them start at the module's root (import "protos/x.proto"), which
// is the nearest folder above DIR with a go.mod.
//
// With -check the command writes nothing: it prints how the files differ from what it would
// generate, and fails if they do.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/linker"
	"github.com/bufbuild/protocompile/protoutil"
	"github.com/bufbuild/protocompile/reporter"
	"google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	check := flag.Bool("check", false, "write nothing; fail if a file differs from what would be generated")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: generate [-check] [DIR]\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	dir := "."
	switch flag.NArg() {
	case 0:
	case 1:
		dir = flag.Arg(0)
	default:
		flag.Usage()
		os.Exit(2)
	}
	if err := run(dir, *check, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "generate: %v\n", err)
		os.Exit(1)
	}
}

// run generates the code of the .proto files in dir, and writes it or, if check is
// set, reports to out where the files on disk differ from it.
func run(dir string, check bool, out io.Writer) error {
	root, sources, err := find(dir)
	if err != nil {
		return err
	}
	files, err := compile(root, sources)
	if err != nil {
		return err
	}
	generated, err := generate(sources, files)
	if err != nil {
		return err
	}
	if check {
		return compare(root, dir, generated, out)
	}
	for _, file := range generated {
		path := filepath.Join(root, filepath.FromSlash(file.GetName()))
		if err := os.WriteFile(path, []byte(file.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// find returns the module's root above dir and the .proto files of dir, sorted,
// as slash-separated paths from that root.
func find(dir string) (root string, sources []string, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return "", nil, err
	}
	root = dir
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		above := filepath.Dir(root)
		if above == root {
			return "", nil, fmt.Errorf("%s: no go.mod in this folder or above it", dir)
		}
		root = above
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", nil, err
	}
	prefix, err := filepath.Rel(root, dir)
	if err != nil {
		return "", nil, err
	}
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) == ".proto" {
			sources = append(sources, filepath.ToSlash(filepath.Join(prefix, entry.Name())))
		}
	}
	if len(sources) == 0 {
		return "", nil, fmt.Errorf("%s: no .proto file in this folder", dir)
	}
	return root, sources, nil
}

// compile parses and links the sources with their comments. Its error lists every
// mistake found, one a line, as file:line:column: message.
func compile(root string, sources []string) (linker.Files, error) {
	var mistakes []error
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{root}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
		Reporter: reporter.NewReporter(func(err reporter.ErrorWithPos) error {
			mistakes = append(mistakes, err)
			return nil
		}, nil),
		MaxParallelism: 1,
	}
	files, err := compiler.Compile(context.Background(), sources...)
	if len(mistakes) > 0 {
		return nil, errors.Join(mistakes...)
	}
	return files, err
}

// generate hands the compiled files to protoc-gen-go as protoc would and returns
// what it wants written, by path from the module's root.
func generate(sources []string, files linker.Files) ([]*pluginpb.CodeGeneratorResponse_File, error) {
	plugin, err := protogen.Options{}.New(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: sources,
		Parameter:      proto.String("paths=source_relative"),
		ProtoFile:      inOrderOfImport(files),
	})
	if err != nil {
		return nil, err
	}
	for _, file := range plugin.Files {
		if file.Generate {
			internal_gengo.GenerateFile(plugin, file)
		}
	}
	response := plugin.Response()
	if response.Error != nil {
		return nil, errors.New(response.GetError())
	}
	return response.GetFile(), nil
}

// inOrderOfImport returns the descriptors of files and of all that they import,
// each after its own imports, which is the order a generator expects.
func inOrderOfImport(files linker.Files) []*descriptorpb.FileDescriptorProto {
	var order []*descriptorpb.FileDescriptorProto
	seen := map[string]bool{}
	var visit func(file protoreflect.FileDescriptor)
	visit = func(file protoreflect.FileDescriptor) {
		if seen[file.Path()] {
			return
		}
		seen[file.Path()] = true
		imports := file.Imports()
		for i := range imports.Len() {
			visit(imports.Get(i).FileDescriptor)
		}
		order = append(order, protoutil.ProtoFromFileDescriptor(file))
	}
	for _, file := range files {
		visit(file)
	}
	return order
}

// compare reports to out every generated file that is missing or differs on disk,
// and every .pb.go in dir that nothing generates.
func compare(root, dir string, generated []*pluginpb.CodeGeneratorResponse_File, out io.Writer) error {
	stale := 0
	var expected []string
	for _, file := range generated {
		path := filepath.Join(root, filepath.FromSlash(file.GetName()))
		expected = append(expected, filepath.Base(path))
		have, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if want := []byte(file.GetContent()); !bytes.Equal(have, want) {
			stale++
			fmt.Fprint(out, diff(file.GetName(), string(have), file.GetContent()))
		}
	}
	present, err := filepath.Glob(filepath.Join(dir, "*.pb.go"))
	if err != nil {
		return err
	}
	for _, path := range present {
		if !slices.Contains(expected, filepath.Base(path)) {
			stale++
			fmt.Fprintf(out, "%s: no .proto file generates it; delete it\n", path)
		}
	}
	if stale > 0 {
		return fmt.Errorf("%d generated file(s) out of date; run go generate in %s", stale, dir)
	}
	return nil
}

// diffLines bounds what diff shows of each side.
const diffLines = 12

// diff shows the lines between the first and the last difference of have and want,
// at most diffLines of each.
func diff(name, have, want string) string {
	a, b := strings.SplitAfter(have, "\n"), strings.SplitAfter(want, "\n")
	first := 0
	for first < min(len(a), len(b)) && a[first] == b[first] {
		first++
	}
	a, b = a[first:], b[first:]
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	var text strings.Builder
	fmt.Fprintf(&text, "--- %s\n+++ %s (generated)\n@@ line %d @@\n", name, name, first+1)
	side := func(sign string, lines []string) {
		for _, line := range lines[:min(len(lines), diffLines)] {
			fmt.Fprintf(&text, "%s%s\n", sign, strings.TrimSuffix(line, "\n"))
		}
		if more := len(lines) - diffLines; more > 0 {
			fmt.Fprintf(&text, "%s… %d more lines\n", sign, more)
		}
	}
	side("-", a)
	side("+", b)
	return text.String()
}
