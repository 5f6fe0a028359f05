package nslkdd

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/gradwire/gradwire/datasets/hostile"
)

// Three records as published.
const sample = "" +
	"0,tcp,ftp_data,SF,491,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,2,2,0.00,0.00,0.00,0.00,1.00,0.00," +
	"0.00,150,25,0.17,0.03,0.17,0.00,0.00,0.00,0.05,0.00,normal,20\n" +
	"0,udp,other,SF,146,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,13,1,0.00,0.00,0.00,0.00,0.08,0.15," +
	"0.00,255,1,0.00,0.60,0.88,0.00,0.00,0.00,0.00,0.00,normal,15\n" +
	"0,tcp,private,S0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,123,6,1.00,1.00,0.00,0.00,0.05,0.07," +
	"0.00,255,26,0.10,0.05,0.00,0.00,1.00,1.00,0.00,0.00,neptune,19\n"

// with returns the sample's first line with one column, counted from 1,
// replaced.
func with(column int, text string) string {
	line, _, _ := strings.Cut(sample, "\n")
	f := strings.Split(line, ",")
	f[column-1] = text
	return strings.Join(f, ",") + "\n"
}

func TestReadEncodesARecord(t *testing.T) {
	for _, encoding := range []int{0, 93, 122} {
		set, err := Read(strings.NewReader(sample), "sample", encoding)
		if err != nil {
			t.Fatal(err)
		}
		if err := set.Validate(); err != nil {
			t.Error(err)
		}
		names, err := Columns(set.Inputs)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float32{}
		for i, x := range set.Row(2) {
			if x != 0 {
				got[names[i]] = x
			}
		}
		want := map[string]float32{
			"protocol_type=tcp": 1, "service=private": 1, "flag=S0": 1, "count": 123, "serror_rate": 1,
			"srv_serror_rate": 1,
			"same_srv_rate":   0.05, "dst_host_srv_count": 26, "dst_host_same_srv_rate": 0.1, "dst_host_serror_rate": 1,
			"dst_host_srv_serror_rate": 1,
		}
		if encoding == 122 {
			maps.Copy(want, map[string]float32{
				"srv_count": 6, "diff_srv_rate": 0.07, "dst_host_count": 255, "dst_host_diff_srv_rate": 0.05,
			})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("encoding %d: inputs that are not 0 (-want +got):\n%s", encoding, diff)
		}
		if diff := cmp.Diff([]int32{0, 0, 1}, set.Y); diff != "" {
			t.Error(diff)
		}
		if set.Classes[DoS] != "DoS" || len(set.Classes) != 5 {
			t.Errorf("classes %q", set.Classes)
		}
	}
}

func TestColumnsHaveTheWidthsAndDistinctNames(t *testing.T) {
	for encoding, numeric := range map[int]int{93: 9, 122: 38} {
		names, err := Columns(encoding)
		if err != nil || len(names) != encoding {
			t.Fatalf("%d names, %v", len(names), err)
		}
		if slices.ContainsFunc(names[:numeric], func(s string) bool { return strings.Contains(s, "=") }) ||
			!strings.Contains(names[numeric], "=") {
			t.Errorf("the first %d columns of %d are not the numeric ones", numeric, encoding)
		}
		if distinct := slices.Compact(slices.Sorted(slices.Values(names))); len(distinct) != encoding {
			t.Errorf("%d distinct names of %d", len(distinct), encoding)
		}
	}
	if _, err := Columns(41); err == nil {
		t.Error("41 inputs: no error")
	}
}

func TestTablesAreSorted(t *testing.T) {
	for _, words := range [][]string{protocols, services, flags} {
		if !slices.IsSorted(words) {
			t.Errorf("%q is not sorted", words)
		}
	}
	for i := 1; i < len(attacks); i++ {
		if attacks[i-1].name >= attacks[i].name {
			t.Errorf("%q stands before %q", attacks[i-1].name, attacks[i].name)
		}
	}
}

func TestParseClassKnowsAllNames(t *testing.T) {
	for class, names := range map[Class]string{
		Normal: "normal",
		DoS:    "apache2 back land mailbomb neptune pod processtable smurf teardrop udpstorm worm",
		Probe:  "ipsweep mscan nmap portsweep saint satan",
		R2L: "ftp_write guess_passwd httptunnel imap multihop named phf sendmail snmpgetattack snmpguess spy " +
			"warezclient warezmaster xlock xsnoop",
		U2R: "buffer_overflow loadmodule perl ps rootkit sqlattack xterm",
	} {
		for _, name := range strings.Fields(names) {
			if got, err := ParseClass(name); err != nil || got != class {
				t.Errorf("%s: %v, %v; want %v", name, got, err, class)
			}
		}
	}
	for _, name := range []string{"", "Normal", "neptun", "neptunes", "zzz", "\x00"} {
		if _, err := ParseClass(name); err == nil || !strings.Contains(err.Error(), "apache2, back") ||
			!strings.Contains(err.Error(), strconv.Quote(name)) {
			t.Errorf("%q: error %v", name, err)
		}
	}
}

func TestErrorsNameLineColumnAndText(t *testing.T) {
	good, _, _ := strings.Cut(sample, "\n")
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"empty":             {"", []string{"f: no records"}},
		"42 fields":         {strings.TrimSuffix(good, ",20"), []string{"f:1: ", "42 comma-separated"}},
		"44 fields":         {good + ",1", []string{"f:1: ", "44 comma-separated"}},
		"long line":         {sample + strings.Repeat("9", 5000), []string{"f:4: ", "longer than 4096", `"99`}},
		"out of range":      {sample + with(5, "1e999"), []string{"f:4: ", "column 5 (src_bytes)", `"1e999"`}},
		"nan":               {with(25, "NaN"), []string{"column 25 (serror_rate)", `"NaN"`, "0 to 1"}},
		"infinite":          {with(1, "inf"), []string{"column 1 (duration)", `"inf"`}},
		"negative":          {with(23, "-1"), []string{"column 23 (count)", `"-1"`, "0 to 511"}},
		"too large":         {with(23, "512"), []string{`"512"`, "0 to 511"}},
		"rate above 1":      {with(41, "1.01"), []string{"column 41 (dst_host_srv_rerror_rate)", `"1.01"`}},
		"empty number":      {with(6, ""), []string{"column 6 (dst_bytes)", `""`}},
		"two points":        {with(6, "1.2.3"), []string{`"1.2.3"`}},
		"only a point":      {with(6, "."), []string{`"."`}},
		"blank":             {with(6, " 1"), []string{`" 1"`}},
		"unknown protocol":  {with(2, "sctp"), []string{"column 2 (protocol_type)", `"sctp"`, "icmp, tcp, udp"}},
		"unknown service":   {with(3, "quic"), []string{"column 3 (service)", `"quic"`, "X11"}},
		"unknown flag":      {with(4, "sf"), []string{"column 4 (flag)", `"sf"`, "SF"}},
		"unknown attack":    {with(42, "ping"), []string{"column 42 (attack)", `"ping"`, "neptune"}},
		"difficulty":        {with(43, "22"), []string{"column 43 (difficulty)", `"22"`, "0 to 21"}},
		"dropped column":    {with(18, "x"), []string{"column 18 (num_shells)", `"x"`}},
		"long text is cut":  {with(3, strings.Repeat("y", 1000)), []string{`yyy"…`}},
		"control character": {with(3, "a\x1b[2J"), []string{`"a\x1b[2J"`}},
		"gzip header":       {"\x1f\x8b\x00", []string{"f: gzip"}},
	} {
		_, err := Read(strings.NewReader(c.text), "f", 93)
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %q does not contain %q", name, err, want)
			}
		}
		if len(err.Error()) > 1000 {
			t.Errorf("%s: an error of %d bytes", name, len(err.Error()))
		}
	}
}

func TestReadAcceptsCRLFMissingLastNewlineAndGzip(t *testing.T) {
	want, err := Read(strings.NewReader(sample), "f", 122)
	if err != nil {
		t.Fatal(err)
	}
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	if _, err := w.Write([]byte(sample)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"CRLF":            strings.ReplaceAll(sample, "\n", "\r\n"),
		"no last newline": strings.TrimSuffix(sample, "\n"),
		"gzip":            z.String(),
	} {
		got, err := Read(strings.NewReader(text), "f", 122)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
	cut := z.String()[:z.Len()-12]
	if _, err := Read(strings.NewReader(cut), "f", 122); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("truncated gzip: %v", err)
	}
}

func TestNumbersMatchStrconv(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[0-9]{0,9}(\.[0-9]{0,12})?(e[+-]?[0-9]{1,2})?`).Draw(t, "text")
		want, err := strconv.ParseFloat(text, 64)
		if err == nil && want > 1e12 {
			err = strconv.ErrRange
		}
		got, gotErr := parseNumber([]byte(text), 1e12)
		if (err == nil) != (gotErr == nil) || err == nil && got != want {
			t.Fatalf("%q: %v, %v; strconv: %v, %v", text, got, gotErr, want, err)
		}
	})
}

func FuzzRead(f *testing.F) {
	hostile.Seed(f, []byte(sample), []byte(with(5, "1e999")), []byte(with(25, "0.123456789012345678")),
		[]byte("\x1f\x8b\x08\x00"), []byte(strings.Repeat(",", 42)))
	f.Fuzz(func(t *testing.T, data []byte) {
		set, err := Read(bytes.NewReader(data), "f", 122)
		if err != nil {
			if e := hostile.Refused(err, "f"); e != nil {
				t.Error(e)
			}
			return
		}
		if err := set.Validate(); err != nil {
			t.Error(err)
		}
	})
}

func TestLoadSaysHowToGetWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	_, err := Load(dir, Options{})
	for _, want := range []string{"KDDTrain+.txt", filepath.Join(dir, "nsl-kdd"), "https://"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not contain %q", err, want)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "KDDTrain+.txt"), []byte(sample), 0o644); err != nil {
		t.Fatal(err)
	}
	if s, err := Load(dir, Options{}); err != nil || s.Pool.Len() != 3 || s.Test != nil {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := Load(dir, Options{TestFile: true}); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(),
		"KDDTest+") {
		t.Errorf("missing test file: %v", err)
	}
	if _, err := Load(dir, Options{Encoding: 41}); err == nil || !strings.Contains(err.Error(), "93 and 122") {
		t.Errorf("encoding 41: %v", err)
	}
}

func dataFolder(t testing.TB) string {
	if testing.Short() {
		t.Skip("reads whole published data sets, which -short leaves out")
	}
	dir := os.Getenv("GRADWIRE_DATA")
	if dir == "" {
		t.Skip("GRADWIRE_DATA does not name a folder with the published data sets")
	}
	return dir
}

func TestPublishedFilesHaveThePublishedClasses(t *testing.T) {
	t.Parallel()
	dir := dataFolder(t)
	for _, encoding := range []int{93, 122} {
		s, err := Load(dir, Options{Encoding: encoding, TestFile: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Test.Validate(); err != nil {
			t.Error(err)
		}
		want := [][]int{{67343, 45927, 11656, 995, 52}, {9711, 7460, 2421, 2885, 67}}
		if diff := cmp.Diff(want, [][]int{s.Pool.Counts(), s.Test.Counts()}); diff != "" {
			t.Errorf("samples per class (-want +got):\n%s", diff)
		}
	}
}

// published reads KDDTrain+ with encoding/csv.
func publishedFolder(t *testing.T, dir string) [][]string {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "nsl-kdd", "KDDTrain+.txt.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	records, err := csv.NewReader(z).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return records
}

// A dumb second reader agrees on every input of every record, and the
// vocabularies are exactly the words that occur.
func TestReaderAgreesWithEncodingCSV(t *testing.T) {
	t.Parallel()
	dir := dataFolder(t)
	s, err := Load(dir, Options{Encoding: 122})
	if err != nil {
		t.Fatal(err)
	}
	records := publishedFolder(t, dir)
	if len(records) != s.Pool.Len() {
		t.Fatalf("%d records, want %d", s.Pool.Len(), len(records))
	}
	var seen [4]map[string]int
	for column, words := range map[int][]string{1: protocols, 2: services, 3: flags} {
		seen[column] = map[string]int{}
		for i, word := range words {
			seen[column][word] = i
		}
		used := map[string]bool{}
		for _, r := range records {
			used[r[column]] = true
		}
		if len(used) != len(words) {
			t.Errorf("column %d has %d words, the table %d", column+1, len(used), len(words))
		}
	}
	want := make([]float32, 122)
	for i, r := range records {
		clear(want)
		at := 0
		for column, text := range r[:41] {
			if column >= 1 && column <= 3 {
				continue
			}
			v, err := strconv.ParseFloat(text, 32)
			if err != nil {
				t.Fatal(err)
			}
			want[at] = float32(v)
			at++
		}
		want[38+seen[1][r[1]]], want[41+seen[2][r[2]]], want[111+seen[3][r[3]]] = 1, 1, 1
		if !slices.Equal(s.Pool.Row(i), want) {
			t.Fatalf("record %d: %v, want %v", i+1, s.Pool.Row(i), want)
		}
	}
}

// Why there are nine: their correlation with "is an attack".
func TestTheNineColumnsAreTheCorrelatedOnes(t *testing.T) {
	t.Parallel()
	s, err := Load(dataFolder(t), Options{Encoding: 122})
	if err != nil {
		t.Fatal(err)
	}
	names, _ := Columns(122)
	nine, _ := Columns(93)
	for j, name := range names[:38] {
		r := math.Abs(correlation(s.Pool.X, s.Pool.Y, 122, j))
		kept := slices.Contains(nine[:9], name)
		switch {
		case kept && (r < 0.576-5e-4 || r > 0.752+5e-4):
			t.Errorf("%s is kept with a correlation of %.4f", name, r)
		case !kept && r > 0.375+5e-4:
			t.Errorf("%s is dropped with a correlation of %.4f", name, r)
		}
	}
}

func correlation(x []float32, y []int32, inputs, column int) float64 {
	var sx, sy, sxx, sxy float64
	n := float64(len(y))
	for i, label := range y {
		a := float64(x[i*inputs+column])
		b := float64(min(label, 1))
		sx, sy, sxx, sxy = sx+a, sy+b, sxx+a*a, sxy+a*b
	}
	if sxx*n == sx*sx {
		return 0
	}
	return (n*sxy - sx*sy) / math.Sqrt((n*sxx-sx*sx)*(n*sy-sy*sy))
}

func BenchmarkRead(b *testing.B) {
	data := []byte(strings.Repeat(sample, 40_000))
	for _, encoding := range []int{93, 122} {
		b.Run(fmt.Sprint(encoding), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Read(bytes.NewReader(data), "f", encoding); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	dir := dataFolder(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Load(dir, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
