package processes

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/turns"
)

var plantedSeeds = flag.Uint64("programme.planted", 10, "seeds to try until one finds a planted mistake")

// edit replaces source text, which its file contains exactly once, with a mistake.
type edit struct{ file, right, wrong string }

// plant is a deliberate mistake, which an overlay of edits compiles into the program.
type plant struct {
	name  string
	theme uint64   // first seed of the theme that finds the mistake
	by    []string // invariants; the mistake breaks one of them first
	edits []edit
}

var plants = []plant{
	// Disables the limits of deaths: in submission for processes that carry out a plan, in node
	// for processes that host its nodes.
	{"deaths of a plan are not counted", 1, []string{"poison-ends"}, []edit{
		{"cluster/submission/attempt.go", "fatalDeaths = 2\n", "fatalDeaths = 1 << 20\n"},
		{"cluster/submission/attempt.go", "mostDeaths  = 4\n", "mostDeaths  = 1 << 20\n"},
		{"cluster/node/conductor.go", "mostDeaths = 2\n", "mostDeaths = 1 << 20\n"},
	}},
	// Disables the check of a file's checksum when a process reads a checkpoint.
	{"checksums of a checkpoint's files are not compared", 5, []string{"damage-refused"}, []edit{
		{"cluster/checkpoint/files.go", "case hex.EncodeToString(sum.Sum(nil)) != f.SHA256:", "case false:"},
	}},
	// Makes the signature of checkpoints differ between program files, and drops the incident of a
	// run that begins anew.
	{"another build begins runs anew and does not say so", 4, []string{"loss-told"}, []edit{
		{"cluster/checkpoint/key.go", "\th := hmac.New(sha256.New, k)\n", "\th := hmac.New(sha256.New, k)\n" +
			"\tname, _ := os.Executable()\n\tif is, err := os.Stat(name); err == nil {\n" +
			"\t\t_, _ = fmt.Fprint(h, is.Size())\n\t}\n"},
		{"cluster/experiment/checkpoint.go", "\t\t\tout.lost(unused)\n", "\t\t\t_ = out.lost\n"},
	}},
	// Makes a client ignore copies when it merges the processes' answers about a submission.
	{"a copy of a record does not count", 3, []string{"known", "record-whole"}, []edit{
		{"cluster/client/client.go", "\t\t\ti, twice := at[t.ID]\n",
			"\t\t\tif t.Copy {\n\t\t\t\tcontinue\n\t\t\t}\n\t\t\ti, twice := at[t.ID]\n"},
	}},
	// Drops the holders' disk errors from the states that clients get, and from the submission's
	// log.
	{"a holder's full disk is silent", 2, []string{"disk-named"}, []edit{
		{"cluster/client/client.go", "Lacking: s.Lacking,", "Lacking: nil,"},
		{"cluster/submission/held.go", "\t\ts.Log(\"%s\", text)\n", "\t\t_ = text\n"},
	}},
}

// overlay writes the edited files and an overlay description for go, and returns its path.
func (p *plant) overlay(t *testing.T, root string) string {
	t.Helper()
	dir, texts := t.TempDir(), map[string]string{}
	for _, e := range p.edits {
		path := filepath.Join(root, e.file)
		if texts[path] == "" {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			texts[path] = string(text)
		}
		if strings.Count(texts[path], e.right) != 1 {
			t.Fatalf("%s does not contain %q exactly once", e.file, e.right)
		}
		texts[path] = strings.Replace(texts[path], e.right, e.wrong, 1)
	}
	replace := map[string]string{}
	for path, text := range texts {
		wrong := filepath.Join(dir, strconv.Itoa(len(replace))+".go")
		if err := os.WriteFile(wrong, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[path] = wrong
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// brokenLine matches the event of a violation: the invariant and the explanation.
var brokenLine = regexp.MustCompile(`BROKEN ([a-z-]+): (.*)`)

// The programme finds each planted mistake, by the expected invariant.
func TestProgrammeFindsPlantedMistakes(t *testing.T) {
	if os.Getenv("GRADWIRE_LENGTHY") == "" {
		t.Skip("builds a program for each mistake; GRADWIRE_LENGTHY=1 runs it")
	}
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range plants {
		t.Run(p.name, func(t *testing.T) {
			turns.Row(t, i, len(plants), 5)
			if err := unprivileged(); err != nil && slices.Contains(p.by, "disk-named") {
				t.Skipf("a full disk requires root: %v", err)
			}
			program := filepath.Join(t.TempDir(), "planted.test")
			build := exec.Command("go", "test", "-c", "-overlay", p.overlay(t, root), "-o", program, ".")
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			for n := range *plantedSeeds {
				seed := p.theme + n*uint64(len(themes))
				run := exec.Command(program, "-test.run", "TestProgramme$", "-test.v", "-programme.shrink", "0",
					"-programme.seed", strconv.FormatUint(seed, 10))
				out, err := run.CombinedOutput()
				broken := brokenLine.FindStringSubmatch(string(out))
				switch {
				case err == nil:
				case broken == nil:
					t.Fatalf("seed %d: %v\n%s", seed, err, out)
				case slices.Contains(p.by, broken[1]):
					t.Logf("seed %d, number %d of its theme: %s: %s", seed, n+1, broken[1], broken[2])
					return
				default:
					t.Errorf("seed %d: found by %s instead of %v\n%s", seed, broken[1], p.by, out)
					return
				}
			}
			t.Errorf("%d seeds of the theme do not find the mistake", *plantedSeeds)
		})
	}
}
