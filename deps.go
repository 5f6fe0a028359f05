//go:build tools

package gradwire

import (
	_ "github.com/asynkron/protoactor-go/actor"
	_ "github.com/bufbuild/protocompile"
	_ "github.com/cespare/xxhash/v2"
	_ "github.com/goccy/go-yaml"
	_ "github.com/goccy/go-yaml/ast"
	_ "github.com/goccy/go-yaml/parser"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/schollz/progressbar/v3"
	_ "github.com/spf13/cobra"
	_ "go.uber.org/goleak"
	_ "golang.org/x/sys/unix"
	_ "golang.org/x/term"
	_ "golang.org/x/tools/go/packages"
	_ "gonum.org/v1/gonum/blas/blas32"
	_ "gonum.org/v1/gonum/stat/distuv"
	_ "gonum.org/v1/plot"
	_ "gonum.org/v1/plot/vg/vgimg"
	_ "google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"
	_ "google.golang.org/protobuf/proto"
	_ "pgregory.net/rapid"
)
