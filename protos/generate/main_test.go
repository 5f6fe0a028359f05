package main

import (
	"bytes"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const greeting = `syntax = "proto3";
package sample;
import "google/protobuf/duration.proto";
import "heads/name.proto";
option go_package = "example.com/sample/heads";

// Greeting says hello.
message Greeting {
  // Who is greeted.
  Name name = 1;
  google.protobuf.Duration wait = 2; // How long to wait.
}
`

const name = `syntax = "proto3";
package sample;
option go_package = "example.com/sample/heads";
message Name { string text = 1; }
`

// module writes the given files into the heads folder of a new module and returns that folder.
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, "heads")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "go.mod"), "module example.com/sample\n")
	for file, text := range files {
		write(t, filepath.Join(dir, file), text)
	}
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestGeneratedCodeParsesAndKeepsComments(t *testing.T) {
	dir := module(t, map[string]string{"greeting.proto": greeting, "name.proto": name})
	if err := run(dir, false, os.Stdout); err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile(filepath.Join(dir, "greeting.pb.go"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.ParseFile(token.NewFileSet(), "greeting.pb.go", code, parser.AllErrors); err != nil {
		t.Error(err)
	}
	for _, want := range []string{
		"// Greeting says hello.", "// Who is greeted.", "// How long to wait.",
		"// source: heads/greeting.proto", "type Greeting struct", "durationpb.Duration",
	} {
		if !bytes.Contains(code, []byte(want)) {
			t.Errorf("generated code lacks %q", want)
		}
	}
}

func TestCheckAcceptsWhatWasGenerated(t *testing.T) {
	dir := module(t, map[string]string{"greeting.proto": greeting, "name.proto": name})
	if err := run(dir, false, os.Stdout); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := run(dir, true, &out); err != nil || out.Len() > 0 {
		t.Errorf("check of fresh files: %v\n%s", err, out.String())
	}
}

func TestCheckNamesEveryDifferenceAndWritesNothing(t *testing.T) {
	dir := module(t, map[string]string{"greeting.proto": greeting, "name.proto": name, "gone.pb.go": "package heads\n"})
	if err := run(dir, false, os.Stdout); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "name.pb.go")
	code, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.Replace(string(code), "type Name struct", "type Nombre struct", 1)
	write(t, path, edited)
	if err := os.Remove(filepath.Join(dir, "greeting.pb.go")); err != nil {
		t.Fatal(err)
	}

	var out strings.Builder
	err = run(dir, true, &out)
	if err == nil || !strings.Contains(err.Error(), "3 generated file(s) out of date") {
		t.Errorf("check of a missing, an edited and an orphaned file: %v", err)
	}
	for _, want := range []string{"-type Nombre struct", "+type Name struct", "+++ heads/greeting.pb.go",
		"gone.pb.go: no .proto file"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("report lacks %q:\n%s", want, out.String())
		}
	}
	if now, err := os.ReadFile(path); err != nil || string(now) != edited {
		t.Errorf("check changed %s (%v)", path, err)
	}
}

func TestMistakesAreAllReportedWithTheirPlace(t *testing.T) {
	dir := module(t, map[string]string{"bad.proto": `syntax = "proto3";
package sample;
option go_package = "example.com/sample/heads";
message A { Missing x = 1; }
message B { Absent y = 1; }
`})
	err := run(dir, false, os.Stdout)
	if err == nil {
		t.Fatal("a file with two unknown types was accepted")
	}
	for _, want := range []string{"bad.proto:4:13", "Missing", "bad.proto:5:13", "Absent"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q: %v", want, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.pb.go")); len(left) > 0 {
		t.Errorf("files written despite the mistakes: %v", left)
	}
}

func TestFolderWithoutProtoFilesIsRefused(t *testing.T) {
	if err := run(module(t, nil), false, os.Stdout); err == nil || !strings.Contains(err.Error(), "no .proto file") {
		t.Errorf("got %v", err)
	}
}
