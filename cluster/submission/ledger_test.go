package submission

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/experiment"
	"github.com/gradwire/gradwire/cluster/request"
	"github.com/gradwire/gradwire/cluster/shelf"
	"github.com/gradwire/gradwire/protos"
)

func TestLedgerGivesTheLastStateOfEachSubmissionWhateverItsLinesAre(t *testing.T) {
	l := ledger{filepath.Join(t.TempDir(), "new", "ledger.jsonl")}
	if entries, bad, err := l.read(); err != nil || bad > 0 || len(entries) > 0 {
		t.Fatalf("%v, %d, %v from a file that is not there", entries, bad, err)
	}
	at := time.Now().Round(0)
	write := func(id, state string) {
		t.Helper()
		if err := l.append(&entry{ID: id, Plan: "p", File: "p.yaml", Submitted: at, State: state, Total: 3,
			Folder: "p-" + id}); err != nil {
			t.Fatal(err)
		}
	}
	spoil := func(text string) {
		t.Helper()
		f, err := os.OpenFile(l.path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
	}
	write("1", request.Waiting)
	write("2", request.Waiting)
	spoil(`{"id":"3","plan":"p","sta`) // the process was killed here
	write("1", request.Running)
	spoil(strings.Repeat("x", 3*maxEntry) + "\n\n\x00\xff\n[1]\nnull\n")
	spoil(`{"id":"4","plan":"p","folder":"../p-4","total":1}` + "\n" + `{"id":"5","plan":"p","folder":"..","total":1}` +
		"\n")
	spoil(`{"id":"6","plan":"p","folder":"p-6","done":2,"total":1}` + "\n")
	write("2", request.Done)
	entries, bad, err := l.read()
	if err != nil || bad != 8 {
		t.Errorf("%d lines were passed over, want 8: %v", bad, err)
	}
	text := ""
	for _, e := range entries {
		text += fmt.Sprintln(e.ID, e.State, e.Total, e.Folder, e.Submitted.Equal(at))
	}
	if text != "1 running 3 p-1 true\n2 done 3 p-2 true\n" {
		t.Errorf("entries are\n%s", text)
	}
	if err := l.replace(entries); err != nil {
		t.Fatal(err)
	}
	if again, bad, err := l.read(); err != nil || bad > 0 || len(again) != 2 {
		t.Errorf("%v, %d, %v after it was rewritten", again, bad, err)
	}
}

func TestLedgerThatIsTooLongGivesItsEnd(t *testing.T) {
	l := ledger{filepath.Join(t.TempDir(), "ledger.jsonl")}
	var text strings.Builder
	n := 0
	for ; text.Len() < maxLedger+maxLedger/4; n++ {
		fmt.Fprintf(&text, `{"id":"%d","plan":"%s","folder":"f","state":"done"}`+"\n", n, strings.Repeat("p", 1000))
	}
	if err := os.WriteFile(l.path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	entries, bad, err := l.read()
	if err != nil || bad > 1 || len(entries) != MaxKept || entries[len(entries)-1].ID != fmt.Sprint(n-1) {
		t.Errorf("%d entries of %d, %d bad, %v", len(entries), n, bad, err)
	}
}

// A client may call a plan's file whatever it likes.
func TestEverySubmissionIsKnownInTheNextLife(t *testing.T) {
	const text = "data: {set: synthetic-traffic, samples: 200}\nmodel: {kind: mlp, layers: [93, 5]}\n" +
		"train: {batch: 4}\narchitecture: {kind: gossip}\nnodes: [{name: n, count: 2, compute: {step: 1ms}}]\n" +
		"stop: {steps: 4}\n"
	c := Config{
		Process: "a", Stop: t.Context(), Out: t.TempDir(), Catalog: catalog.Default(), Log: t.Logf,
		Shared: &shelf.Shared{}, Changed: func() uint64 { return 1 },
		Venue: func(*Submission, []string) (experiment.Venue, error) { return experiment.Virtual{}, nil },
	}
	before, files := New(c), []string{"plan.yaml", "", ".", "..", "/", "/.yaml", "a/b.yaml"}
	for _, file := range files {
		m := &protos.SubmitPlan{File: file, Text: text}
		if _, _, err := before.submit(t.Context(), "somebody", m, nil); err != nil {
			t.Errorf("%q: %v", file, err)
		}
	}
	after := New(c)
	after.Remember()
	if n := len(after.All()); n != len(files) {
		t.Errorf("%d submissions of %d are known", n, len(files))
	}
}
