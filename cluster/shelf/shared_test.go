package shelf_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/experiment"
	"github.com/gradwire/gradwire/cluster/shelf"
	"github.com/gradwire/gradwire/datasets"
)

// dataOf is the data of a plan with these settings, in a process with this folder of files.
func dataOf(t *testing.T, dir, data string) *catalog.Data {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	c := catalog.Default()
	c.Folder = root
	pl, err := experiment.Parse("p.yaml", []byte(`data: `+data+`
model: {kind: mlp, layers: [2, 2]}
architecture: {kind: parameter-server}
nodes: [{name: s, role: server}, {name: w, role: worker}]
stop: {steps: 1}
`))
	if err != nil {
		t.Fatal(err)
	}
	points, err := pl.Points(c)
	if err != nil {
		t.Fatal(err)
	}
	return &points[0].Spec.Data
}

func TestPlansOfOneProcessShareTheDataThatIsInUseAndReadAFileAgainThatHasChanged(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "t.csv")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("1,2,a\n3,4,b\n5,6,a\n7,8,b\n")
	d := dataOf(t, dir, "{set: csv, file: t.csv, test: 50%}")
	var both shelf.Shared
	get := func(seed uint64) *shelf.Samples {
		t.Helper()
		own := shelf.New(dir, 1, &both)
		s, err := own.Samples(d, seed)
		if err != nil {
			t.Fatal(err)
		}
		if files := own.Files(); len(files) != 1 || files[0].Name != "t.csv" {
			t.Errorf("the files of the samples are %+v", files)
		}
		return s
	}
	first, second, other := get(1), get(1), get(2)
	if first.Train != second.Train || first.Test != second.Test || first.Train == other.Train {
		t.Error("equal samples are not shared, or others are")
	}
	runtime.KeepAlive(first)
	write("1,2,a\n3,4,b\n5,6,a\n7,8,b\n9,9,b\n9,9,a\n")
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(file, later, later); err != nil {
		t.Fatal(err)
	}
	if changed := get(1); changed.Train.Len() != 3 {
		t.Errorf("%d samples of a file that has 3 now", changed.Train.Len())
	}
	runtime.KeepAlive(second)
}

// Of a column of times in milliseconds, digits count that a float32 loses beside a value far away.
func TestDigitsThatAFarValueCostsAreToldOrKept(t *testing.T) {
	dir := t.TempDir()
	table := func(outlier string) string {
		text := "t,label\n"
		for i := range 200 {
			text += fmt.Sprintf("%d,%s\n", 1700000000000+37*i, string("ab"[i%2]))
		}
		return text + outlier
	}
	for name, text := range map[string]string{"alone": table(""), "zero": table("0,a\n"), "minus": table("-1,a\n"),
		"later": table("9e15,b\n")} {
		if err := os.WriteFile(filepath.Join(dir, name+".csv"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, scale := range []string{"none", "min-max", "standard", "log-min-max"} {
			d := dataOf(t, dir, fmt.Sprintf("{set: csv, file: %s.csv, test: 10%%, scale: %s}", name, scale))
			s, err := shelf.New(dir, 1, &shelf.Shared{}).Samples(d, 1)
			if err != nil {
				t.Fatal(err)
			}
			told := slices.ContainsFunc(s.Files, func(f datasets.File) bool {
				return strings.Contains(strings.Join(f.Notes, "\n"), "column t, with values such as 17000")
			})
			x := slices.Clone(s.Train.X)
			slices.Sort(x)
			if kept := len(slices.Compact(x)); kept < 170 && !told {
				t.Errorf("%s, scale %s: %d of 180 values are told apart, and nothing is said", name, scale, kept)
			} else if kept >= 170 && told {
				t.Errorf("%s, scale %s: %v", name, scale, s.Files[0].Notes)
			}
		}
	}
}

// A process that stops does not wait for a file that is being read.
func TestAStopCancelsWaitingForData(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "t.csv"), []byte("1,2,a\n3,4,b\n5,6,a\n7,8,b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := dataOf(t, dir, "{set: csv, file: t.csv, test: 50%}")
	read := make(chan struct{})
	defer close(read)
	d.Load = func(string, bool) (*datasets.Source, error) { // as slow as for a large file
		<-read
		return nil, errors.ErrUnsupported
	}
	stopping := errors.New("stopping")
	stop, halt := context.WithCancelCause(t.Context())
	own := shelf.New(dir, 1, &shelf.Shared{Stop: stop})
	ended := make(chan error)
	go func() {
		_, err := own.Samples(d, 1)
		ended <- err
	}()
	halt(stopping)
	if err := <-ended; !errors.Is(err, stopping) {
		t.Errorf("%v, want the reason of the stop", err)
	}
	if _, err := own.Source(d); !errors.Is(err, stopping) {
		t.Errorf("%v, want the reason of the stop", err)
	}
}

// A note about inputs belongs to the file of the inputs, in any order of reading.
func TestDigitsThatAreLostAreNotedOnTheFileOfTheInputs(t *testing.T) {
	dir := t.TempDir()
	put := func(name, kind, shape string, values ...uint64) {
		header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n", kind, shape)
		b := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8))
		b = append(b, header...)
		for _, v := range values {
			b = binary.LittleEndian.AppendUint64(b, v)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const unix = 1_732_678_850_123 // in milliseconds
	for kind, of := range map[string]func(uint64) uint64{
		"<i8": func(v uint64) uint64 { return v }, "<u8": func(v uint64) uint64 { return v },
		"<f8": func(v uint64) uint64 { return math.Float64bits(float64(v)) },
	} {
		put("x.npy", kind, "(4, 1)", of(unix), of(unix+1), of(unix+2), of(unix+3))
		put("y.npy", "<i8", "(4,)", 0, 1, 0, 1)
		d := dataOf(t, dir, "{set: npy, x: x.npy, y: y.npy, test: 25%, scale: none}")
		s, err := shelf.New(dir, 1, &shelf.Shared{}).Samples(d, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range s.Files {
			if noted := f.Notes != nil; noted != (f.Name == "x.npy") {
				t.Errorf("%s: %s has the notes %q", kind, f.Name, f.Notes)
			}
		}
	}
}
