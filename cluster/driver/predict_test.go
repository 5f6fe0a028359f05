package driver_test

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/record/safetensors"
	"github.com/gradwire/gradwire/cluster/turns"
	"github.com/gradwire/gradwire/datasets/nslkdd"
)

// confusion counts predictions by the true classes and the predicted ones.
func confusion(t *testing.T, p *driver.Predicted, truth []string) [][]int {
	t.Helper()
	if len(truth) != len(p.Predictions) {
		t.Fatalf("%d predictions of %d samples", len(p.Predictions), len(truth))
	}
	counts := make([][]int, len(p.Classes))
	for i := range counts {
		counts[i] = make([]int, len(p.Classes))
	}
	for i, of := range p.Predictions {
		counts[slices.Index(p.Classes, truth[i])][slices.Index(p.Classes, of.Class)]++
	}
	return counts
}

// predict fails the test where the model of the first run cannot say what a file is.
func predict(t *testing.T, r *driver.Report, o driver.OtherFile) *driver.Predicted {
	t.Helper()
	p, err := driver.Predict(nil, runFolder(r.Dir, 0), "", o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// publishedTest is a published test file, with a way to read its true classes that is none of the
// readers of data sets.
type publishedTest struct {
	set, model, file, labels string
	truth                    func(text []byte) []string
}

// attacks are the classes of lines of NSL-KDD.
func attacks(text []byte) (truth []string) {
	for line := range strings.Lines(string(text)) {
		class, err := nslkdd.ParseClass(strings.Split(line, ",")[41])
		if err != nil {
			panic(err)
		}
		truth = append(truth, nslkdd.ClassNames()[class])
	}
	return truth
}

var publishedTests = []publishedTest{
	{set: "nsl-kdd, encoding: 93", model: "[93, 21, 5]", file: "nsl-kdd/KDDTest+.txt.gz", truth: attacks},
	{set: "nsl-kdd, encoding: 122", model: "[122, 5]", file: "nsl-kdd/KDDTest+.txt.gz", truth: attacks},
	{set: "a9a", model: "[123, 8, 2]", file: "a9a/a9a.t.gz", truth: func(text []byte) (truth []string) {
		for line := range strings.Lines(string(text)) {
			truth = append(truth, line[:2])
		}
		return truth
	}},
	{set: "mnist", model: "[784, 10]", file: "mnist/t10k-images-idx3-ubyte.gz",
		labels: "mnist/t10k-labels-idx1-ubyte.gz", truth: func(text []byte) (truth []string) {
			for _, b := range text[8:] {
				truth = append(truth, strconv.Itoa(int(b)))
			}
			return truth
		}},
}

func TestPredictionsOfAPublishedTestSetAreWhatEvalCounts(t *testing.T) {
	turns.Take(t, 2, 3)
	if testing.Short() {
		t.Skip("takes long on one core")
	}
	data := os.Getenv("GRADWIRE_DATA")
	if data == "" {
		t.Skip("GRADWIRE_DATA does not name a folder with the published data sets")
	}
	for _, c := range publishedTests {
		r := run(t, load(t, described93, "data={set: "+c.set+", test: published}", "stop={steps: 60}",
			"model={kind: mlp, layers: "+c.model+"}", "evaluate.every=60 steps"), driver.Options{Data: data})
		e, err := driver.Evaluate(runFolder(r.Dir, 0), "", driver.Options{Data: data})
		if err != nil {
			t.Fatal(err)
		}
		o, truth := driver.OtherFile{Path: filepath.Join(data, c.file)}, filepath.Join(data, c.file)
		if c.labels != "" {
			truth = filepath.Join(data, c.labels)
			o.Labels = truth
		}
		got := confusion(t, predict(t, r, o), c.truth(unzipped(t, truth)))
		if fmt.Sprint(got) != fmt.Sprint(e.Test.Confusion) {
			t.Errorf("%s: predictions are counted as %v, eval counts %v", c.set, got, e.Test.Confusion)
		}
		if j, err := driver.EvaluateOn(nil, runFolder(r.Dir, 0), "", o); err != nil ||
			fmt.Sprint(j.Test) != fmt.Sprint(e.Test) {
			t.Errorf("%s: eval of the file says %v, %v; of the run %v", c.set, j, err, e.Test)
		}
	}
}

func unzipped(t *testing.T, path string) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(read(t, path)))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// patients makes n rows of a table, some ages of which are missing.
func patients(n int, seed uint64) (rows [][]string) {
	r := rand.New(rand.NewPCG(seed, 0))
	for i := range n {
		age, colour := 18+62*r.Float64(), []string{"red", "blue", "green"}[r.IntN(3)]
		income := "low"
		if age+10*r.NormFloat64() > 50 {
			income = "high"
		}
		text := strconv.FormatFloat(age, 'f', 2, 32)
		if r.IntN(20) == 0 {
			text = ""
		}
		dose := strconv.FormatFloat(r.Float64(), 'g', 5, 32)
		rows = append(rows, []string{strconv.Itoa(i), text, colour, income, dose})
	}
	return rows
}

var header = []string{"id", "age", "colour", "income", "dose"}

// patientTable writes columns of rows, in an order, with a header.
func patientTable(t *testing.T, path string, rows [][]string, columns ...string) string {
	t.Helper()
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	for _, row := range append([][]string{header}, rows...) {
		var fields []string
		for _, c := range columns {
			fields = append(fields, row[slices.Index(header, c)])
		}
		if err := w.Write(fields); err != nil {
			t.Fatal(err)
		}
	}
	w.Flush()
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// ofTable runs logistic regression on a table, and returns the rows of its test file and its name.
func ofTable(t *testing.T, dir string, set ...string) (r *driver.Report, rows [][]string, test string) {
	t.Helper()
	patientTable(t, filepath.Join(dir, "train.csv"), patients(400, 1), header...)
	rows = patients(150, 2)
	test = patientTable(t, filepath.Join(dir, "test.csv"), rows, header...)
	text := strings.Replace(described93, "data: {set: synthetic-traffic, samples: 2000, encoding: 93, test: 25%}",
		"data: {set: csv, file: train.csv, test-file: test.csv, label: income, words: [colour], ignore: [id], "+
			"missing: mean}", 1)
	set = append([]string{"model={kind: mlp, layers: [5, 2]}"}, set...)
	plan, err := driver.Parse(filepath.Join(dir, "plan.yaml"), []byte(text), set...)
	if err != nil {
		t.Fatal(err)
	}
	return run(t, plan, driver.Options{}), rows, test
}

// textbook are the means and deviations of the columns age and dose of a table, whose gaps are
// filled with the means first.
type textbook struct{ mean, deviation [2]float64 }

func newTextbook(rows [][]string) *textbook {
	b := &textbook{}
	for i, column := range []int{1, 4} {
		n := 0.0
		for _, row := range rows {
			if row[column] != "" {
				b.mean[i] += b.number(row[column], i)
				n++
			}
		}
		b.mean[i] /= n
		for _, row := range rows {
			b.deviation[i] += math.Pow(b.number(row[column], i)-b.mean[i], 2) / float64(len(rows))
		}
		b.deviation[i] = math.Sqrt(b.deviation[i])
	}
	return b
}

func (b *textbook) number(text string, i int) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return b.mean[i]
	}
	return v
}

// high is the probability of the class high by logistic regression.
func (b *textbook) high(row []string, params []float32) float64 {
	x := []float64{(b.number(row[1], 0) - b.mean[0]) / b.deviation[0], 0, 0, 0,
		(b.number(row[4], 1) - b.mean[1]) / b.deviation[1]}
	x[1+slices.Index([]string{"blue", "green", "red"}, row[2])] = 1
	var z [2]float64
	for c := range z {
		z[c] = float64(params[10+c])
		for j, v := range x {
			z[c] += float64(params[5*c+j]) * v
		}
	}
	return 1 / (1 + math.Exp(z[1]-z[0]))
}

// Means, deviations, one-hot inputs and probabilities are computed again from the text of the
// tables and the tensors of the model's file.
func TestPredictionsAreThoseOfTextbookFormulasOnTheTable(t *testing.T) {
	r, rows, test := ofTable(t, t.TempDir())
	b, params := newTextbook(patients(400, 1)), describedIn(t, r.Dir).params
	p := predict(t, r, driver.OtherFile{Path: test})
	truth := make([]string, len(rows))
	for i, row := range rows {
		truth[i] = row[3]
		want, probability := "high", b.high(row, params)
		if probability < 0.5 {
			want, probability = "low", 1-probability
		}
		if got := p.Predictions[i]; got.Class != want || math.Abs(float64(got.Probability)-probability) > 1e-5 ||
			got.Row != i+1 {
			t.Errorf("row %d: %+v, want %s with %v", i+1, got, want, probability)
		}
	}
	e, err := driver.Evaluate(runFolder(r.Dir, 0), "", driver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := confusion(t, p, truth); fmt.Sprint(got) != fmt.Sprint(e.Test.Confusion) {
		t.Errorf("predictions are counted as %v, eval counts %v", got, e.Test.Confusion)
	}
}

func TestColumnsInAnyOrderAndWithoutTheLabelGiveTheSamePredictions(t *testing.T) {
	dir := t.TempDir()
	r, rows, test := ofTable(t, dir)
	want := predict(t, r, driver.OtherFile{Path: test})
	for i, columns := range [][]string{{"dose", "income", "colour", "id", "age"}, {"colour", "age", "dose"},
		{"age", "dose", "id", "colour"}} {
		path := patientTable(t, filepath.Join(dir, fmt.Sprint(i, ".csv")), rows, columns...)
		text := read(t, path)
		for _, o := range []driver.OtherFile{{Path: path}, {Path: "-", Text: bytes.NewReader(text)}} {
			if got := predict(t, r, o); !slices.Equal(got.Predictions, want.Predictions) {
				t.Errorf("columns %q give other predictions", columns)
			}
		}
	}
	model, err := driver.Predict(nil, filepath.Join(runFolder(r.Dir, 0), "model.safetensors"), "",
		driver.OtherFile{Path: test})
	if err != nil || !slices.Equal(model.Predictions, want.Predictions) {
		t.Errorf("the model's file alone gives other predictions: %v", err)
	}
}

// Without a header, columns go by their places; the label's may be missing.
func TestATableWithoutAHeaderIsReadByThePlacesOfItsColumns(t *testing.T) {
	dir := t.TempDir()
	bare := func(name string, rows [][]string, label bool) string {
		var b strings.Builder
		for _, row := range rows {
			if b.WriteString(orZero(row[1]) + "," + row[2] + ","); label {
				b.WriteString(row[3] + ",")
			}
			b.WriteString(row[4] + "\n")
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	training := bare("bare.csv", patients(400, 1), true)
	r, rows, _ := ofTable(t, dir,
		fmt.Sprintf("data={set: csv, file: %s, header: absent, label: 3, words: [2]}", training))
	with, without := bare("with.csv", rows, true), bare("without.csv", rows, false)
	want := predict(t, r, driver.OtherFile{Path: with})
	if got := predict(t, r, driver.OtherFile{Path: without}); !slices.Equal(got.Predictions, want.Predictions) {
		t.Error("the label's column changes predictions")
	}
	_, err := driver.EvaluateOn(nil, runFolder(r.Dir, 0), "", driver.OtherFile{Path: without})
	expectInput(t, err, without+":1: 3 columns; the training file has 4")
}

func orZero(text string) string {
	if text == "" {
		return "0"
	}
	return text
}

func TestWordsThatTheTrainingSetHasNotAreNoneOfTheColumnsAndAreTold(t *testing.T) {
	dir := t.TempDir()
	r, _, _ := ofTable(t, dir)
	ask := func(colours ...string) *driver.Predicted {
		text := "age,dose,colour\n"
		for _, c := range colours {
			text += "40,0.5," + c + "\n"
		}
		return predict(t, r, driver.OtherFile{Path: "-", Text: strings.NewReader(text)})
	}
	known, unknown := ask("red", "", "blue"), ask("red", "teal", "blue", "plum")
	none := known.Predictions[1] // a missing word
	for _, i := range []int{1, 3} {
		if got := unknown.Predictions[i]; got.Class != none.Class || got.Probability != none.Probability {
			t.Errorf("an unknown word gives %+v, none gives %+v", got, none)
		}
	}
	if u := unknown.Unknown; len(known.Unknown) != 0 || len(u) != 1 || u[0].Column != "colour" ||
		u[0].First != "teal" || u[0].Line != 3 || u[0].Values != 2 {
		t.Errorf("unknown words %+v and %+v", known.Unknown, u)
	}
}

func TestSamplesThatTrainingWouldLeaveOutHaveNoClass(t *testing.T) {
	dir := t.TempDir()
	r, _, _ := ofTable(t, dir, "data.missing=drop")
	o := driver.OtherFile{Path: "-", Text: strings.NewReader("age,dose,colour,income\n,0.5,red,low\n30,.5,red,low\n" +
		"30,.5,,low\n60,,red,low\n30,.5,red,\n")}
	p := predict(t, r, o)
	var rows []int
	for _, of := range p.Predictions {
		if of.Class != "" {
			rows = append(rows, of.Row)
		}
	}
	if len(p.Predictions) != 5 || !slices.Equal(rows, []int{2, 5}) || p.LeftOut != 3 {
		t.Errorf("%+v; rows 2 and 5 have all that the model takes", p)
	}
}

func TestFilesThatDoNotFitTheModelAreRefused(t *testing.T) {
	dir := t.TempDir()
	r, _, _ := ofTable(t, dir)
	dropped, _, _ := ofTable(t, dir, "data.missing=refuse", "data.ignore=[id, age]", "model.layers=[4, 2]")
	for _, c := range []struct {
		of         *driver.Report
		text, want string
		labelled   bool
	}{
		{r, "age,dose,colour,height\n1,2,red,3\n", `stdin:1: column 4 is named "height", which the training file has ` +
			`not; accepted are ["age" "colour" "dose"] and, if they are there, ["id" "income"]`, false},
		{r, "age,colour\n1,red\n", `stdin:1: there is no column "dose"; accepted are ["age" "colour" "dose"]`, false},
		{r, "age,dose,colour\n1,2,red\n1,x,red\n", `stdin:3: column 2 (dose): "x" is not a number`, false},
		{r, "age,dose,colour\n1,2\n", `stdin:2: 2 fields; the table has 3 columns`, false},
		{r, "age,dose,colour\n1,2,red\n", `stdin:1: there is no column "income"`, true},
		{r, "age,dose,colour,income\n1,2,red,low\n1,2,red,none\n",
			`stdin:3: column 4 (income): "none" does not occur in the training file, which has ["high" "low"]`, true},
		{r, "", `stdin: no samples`, false},
		{dropped, "dose,colour\n,red\n", `stdin:2: column 1 (dose): "" is not a number`, false},
	} {
		o := driver.OtherFile{Path: "-", Text: strings.NewReader(c.text)}
		var err error
		if c.labelled {
			_, err = driver.EvaluateOn(nil, runFolder(c.of.Dir, 0), "", o)
		} else {
			_, err = driver.Predict(nil, runFolder(c.of.Dir, 0), "", o)
		}
		expectInput(t, err, c.want)
	}
	_, err := driver.Predict(nil, runFolder(r.Dir, 0), "w1", driver.OtherFile{Path: "x"})
	expectInput(t, err, `there is no model of a node "w1"; accepted are none: the file has a single model`)
}

func TestAModelThatDoesNotSayHowItIsUsedIsRefused(t *testing.T) {
	dir := t.TempDir()
	r, _, test := ofTable(t, dir)
	file := read(t, runFolder(r.Dir, 0), "model.safetensors")
	params, tensors, metadata, err := safetensors.Read(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ key, value, want string }{
		{"layout", "", "the model does not say which columns its inputs were: it was saved by an earlier version"},
		{"layout", `{"columns": [{"name": "age", "use": "number"}]}`, "0 columns of labels; 1 is needed"},
		{"layout", `{"columns": [{"name": "y", "use": "label", "words": ["a"]}]}`, "1 labels for 2 classes"},
		{"layout", `{"columns": [{"name": "y", "use": "class"}]}`, `the layout's column 1 is "class"`},
		{"layout", `{"header": true, "columns": [{"name": "dose", "use": "number"}, {"name": "age", "use": "ignored"},
			{"name": "id", "use": "ignored"}, {"name": "colour", "use": "ignored"},
			{"name": "income", "use": "label", "words": ["a", "b"]}]}`,
			"the layout's columns are 1 inputs; the model takes 5"},
		{"model", "", "does not say which model it was trained with"},
		{"model", `{"kind": "mlp", "layers": [6, 2]}`, "metadata input_shape: [5]; the model takes 6 inputs"},
		{"data", `{"set": "nothing"}`, `nothing`},
		{"classes", "", "the file's metadata have no classes"},
		{"classes", `["a"]`, "1 names; the model tells 2 classes apart"},
		{"scaling", "", "the file's metadata have no scaling"},
		{"scaling", `{"kind": "standard", "columns": [0, 9], "offset": [1, 1], "width": [1, 1]}`,
			"scaled column 9 after 0"},
		{"scaling", `{"kind": "standard", "columns": [0], "offset": [1, 1], "width": [1]}`, "2 offsets and 1 widths"},
		{"scaling", `{"kind": "none", "omitted": 70000}`, "the file does not say how inputs are scaled"},
		{"missing", `{"columns": [9], "values": [1]}`, "filled column 9 is none of the 5 inputs"},
		{"scaling", strings.Replace(metadata["scaling"], "{", `{"surprise": [1], `, 1), ""},
		{"layout", strings.Replace(metadata["layout"], "{", `{"surprise": [1], `, 1), ""},
		{"surprise", "1", ""},
		{"scaling", `{"surprise": 1, "kind": 3}`, `key "kind" is the number 3; a string is accepted`},
	} {
		changed := maps.Clone(metadata)
		if changed[c.key] = c.value; c.value == "" {
			delete(changed, c.key)
		}
		var b bytes.Buffer
		if err := safetensors.Write(&b, tensors, changed, params); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "changed.safetensors")
		if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := driver.Predict(nil, path, "", driver.OtherFile{Path: test})
		if c.want != "" {
			expectInput(t, err, c.want)
		} else if err != nil {
			t.Errorf("%s = %s: %v", c.key, c.value, err)
		}
	}
}

// Each node's model is the one whose accuracy the record has.
func TestTheModelOfANodeIsChosenByItsName(t *testing.T) {
	dir := t.TempDir()
	r, _, test := ofTable(t, dir, "architecture={kind: local}", "evaluate.of=mean", "record=models")
	_, _, metadata, err := safetensors.Read(bytes.NewReader(read(t, runFolder(r.Dir, 0), "models.safetensors")))
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range []string{"w1", "w2"} {
		j, err := driver.EvaluateOn(nil, runFolder(r.Dir, 0), node, driver.OtherFile{Path: test})
		if err != nil {
			t.Fatal(err)
		}
		if got := strconv.FormatFloat(float64(j.Test.Accuracy), 'g', -1, 64); got != metadata["accuracy "+node] {
			t.Errorf("%s has an accuracy of %s, the run had %s", node, got, metadata["accuracy "+node])
		}
		e, err := driver.Evaluate(runFolder(r.Dir, 0), node, driver.Options{})
		if err != nil || fmt.Sprint(e.Test) != fmt.Sprint(j.Test) {
			t.Errorf("%s: by its run's test set %v, %v; by the file %v", node, e, err, j.Test)
		}
	}
	_, err = driver.Predict(nil, runFolder(r.Dir, 0), "", driver.OtherFile{Path: test})
	expectInput(t, err, "those of the nodes w1, w2")
}

const features = 6

// drawn are n samples of three classes.
func drawn(n int, seed uint64) (x, y []byte) {
	draw := rand.New(rand.NewPCG(seed, 0))
	for range n {
		class := byte(draw.IntN(3))
		for range features {
			x = append(x, byte(draw.IntN(40))+30*class)
		}
		y = append(y, class)
	}
	return x, y
}

// writeFormats writes samples in every format of arrays and lines, under names that begin with
// part.
func writeFormats(t *testing.T, dir, part string, x, y []byte) {
	n := byte(len(y))
	files := map[string][]byte{
		"-x.npy": npyFile(x, len(y), features), "-y.npy": npyFile(y, len(y)),
		"-x.idx": append([]byte{0, 0, 8, 2, 0, 0, 0, n, 0, 0, 0, features}, x...),
		"-y.idx": append([]byte{0, 0, 8, 1, 0, 0, 0, n}, y...),
	}
	archive := &bytes.Buffer{}
	z := zip.NewWriter(archive)
	for _, name := range []string{"x", "y"} {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: zip.Store})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write(files["-"+name+".npy"]) // to memory
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	files[".npz"] = archive.Bytes()
	for i, class := range y {
		inputs := ""
		for j, v := range x[features*i : features*(i+1)] {
			inputs += fmt.Sprintf(" %d:%d", j+1, v)
		}
		files[".txt"] = fmt.Appendf(files[".txt"], "%d%s\n", class, inputs)
		files["-bare.txt"] = fmt.Appendf(files["-bare.txt"], "%s\n", inputs[1:])
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, part+name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPredictionsOfEveryFormatAreWhatEvalCounts(t *testing.T) {
	dir := t.TempDir()
	x, y := drawn(200, 1)
	writeFormats(t, dir, "train", x, y)
	x, y = drawn(90, 2)
	writeFormats(t, dir, "test", x, y)
	var truth []string
	for _, class := range y {
		truth = append(truth, strconv.Itoa(int(class)))
	}
	for _, c := range []struct {
		data  string
		asked []string // also without labels
	}{
		{"npy, x: %train-x.npy, y: %train-y.npy, test-x: %test-x.npy, test-y: %test-y.npy, scale: min-max",
			[]string{"test-x.npy"}},
		{"idx, images: %train-x.idx, labels: %train-y.idx, test-images: %test-x.idx, test-labels: %test-y.idx, " +
			"scale: standard", []string{"test-x.idx"}},
		{"libsvm, file: %train.txt, test-file: %test.txt, scale: log-min-max", []string{"test.txt", "test-bare.txt"}},
		{"npz, file: %train.npz, x: x, y: y, scale: standard", []string{"test.npz"}},
	} {
		data := "data={set: " + strings.ReplaceAll(c.data, "%", dir+"/") + "}"
		r := run(t, load(t, described93, data, "model.layers=[6, 4, 3]"), driver.Options{})
		o := driver.OtherFile{Path: filepath.Join(dir, c.asked[0])}
		arrays := strings.Contains(c.asked[0], "-x")
		if arrays {
			o.Labels = strings.Replace(o.Path, "-x", "-y", 1)
		}
		j, err := driver.EvaluateOn(nil, runFolder(r.Dir, 0), "", o)
		if err != nil {
			t.Fatal(err)
		}
		if e, err := driver.Evaluate(runFolder(r.Dir, 0), "", driver.Options{}); err != nil ||
			e.Test.Samples == len(truth) && fmt.Sprint(e.Test) != fmt.Sprint(j.Test) {
			t.Errorf("%s: eval of the file says %v; of the run %v, %v", c.data, j, e, err)
		}
		for _, file := range c.asked {
			got := confusion(t, predict(t, r, driver.OtherFile{Path: filepath.Join(dir, file)}), truth)
			if fmt.Sprint(got) != fmt.Sprint(j.Test.Confusion) {
				t.Errorf("%s: predictions are counted as %v, eval counts %v", file, got, j.Test.Confusion)
			}
		}
		if arrays {
			refusesArrays(t, r, o)
		}
	}
}

// refusesArrays asks for what cannot be read of arrays.
func refusesArrays(t *testing.T, r *driver.Report, o driver.OtherFile) {
	t.Helper()
	_, err := driver.Predict(nil, runFolder(r.Dir, 0), "", driver.OtherFile{Text: strings.NewReader("")})
	expectInput(t, err, "stdin: the samples are arrays, which are read from files; name one")
	_, err = driver.EvaluateOn(nil, runFolder(r.Dir, 0), "", driver.OtherFile{Path: o.Path})
	expectInput(t, err, o.Path+" has no labels: they are in a file to themselves; name that too")
	_, err = driver.Predict(nil, runFolder(r.Dir, 0), "", driver.OtherFile{Path: o.Labels})
	expectInput(t, err, o.Labels+": ")
}

// npyFile is an array of bytes as NumPy writes it.
func npyFile(values []byte, dims ...int) []byte {
	shape := strings.Trim(strings.ReplaceAll(fmt.Sprint(dims), " ", ", "), "[]") + ","
	head := fmt.Sprintf("{'descr': '|u1', 'fortran_order': False, 'shape': (%s), }", shape)
	head += strings.Repeat(" ", 117-len(head)) + "\n"
	return append([]byte("\x93NUMPY\x01\x00"+string([]byte{byte(len(head)), 0})+head), values...)
}
