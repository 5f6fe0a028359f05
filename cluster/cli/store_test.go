package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/cli"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/store"
	"github.com/gradwire/gradwire/cluster/store/storetest"
)

// wants runs a command that must end with a code, and returns its output.
func wants(t *testing.T, code int, args ...string) (out, errs string) {
	t.Helper()
	got, out, errs := gradwireHere(args...)
	if got != code {
		t.Fatalf("gradwire %s: exit code %d, want %d: %s", strings.Join(args, " "), got, code, errs)
	}
	return out, errs
}

// digests returns the digests of a record's runs.
func digests(t *testing.T, dir string) (all []string) {
	t.Helper()
	s, err := record.ReadSummary(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range s.Runs {
		all = append(all, r.Digest)
	}
	return all
}

// Each command reads a record in a store as it does in a folder.
func TestRecordInAStoreIsReadLikeOneInAFolder(t *testing.T) {
	s := storetest.Start(t)
	enter(t, small+"record: events\ncheckpoint: {every: 200ms, to: \"s3://bucket-2/copies/first\"}\n")
	const address = "s3://bucket/records/first"
	wants(t, cli.ExitDone, "run", "plan.yaml", "--out", "first", "--repeats", "2")
	wants(t, cli.ExitInput, "run", "plan.yaml", "--out", "second", "--repeats", "2") // the copy is there
	out, _ := wants(t, cli.ExitDone, "run", "plan.yaml", "--out", address, "--repeats", "2", "--set",
		"checkpoint.to="+address)
	if !strings.Contains(out, "The record is in "+address) {
		t.Errorf("the output does not say where the record is:\n%s", out)
	}
	for _, args := range [][]string{
		{"report", "--table", "csv", "RECORD"}, {"eval", "RECORD/runs/0001"}, {"replay", "RECORD/runs/0001"},
		{"predict", "RECORD/runs/0000", "--data", "samples.csv"},
	} {
		var told []string
		for _, where := range []string{"first", address, "s3://bucket-2/copies/first"} {
			line := strings.Split(strings.ReplaceAll(strings.Join(args, " "), "RECORD", where), " ")
			code, out, errs := gradwireHere(line...)
			if args[0] != "predict" && code != cli.ExitDone {
				t.Errorf("%v: exit code %d: %s", line, code, errs)
			}
			told = append(told, out)
		}
		if told[0] != told[1] || told[0] != told[2] {
			t.Errorf("%v differ:\n%s", args, strings.Join(told, "\n"))
		}
	}
	wants(t, cli.ExitDone, "diff", "first/runs/0000", address+"/runs/0000")
	wants(t, cli.ExitDone, "diff", "first", "s3://bucket-2/copies/first")
	wants(t, cli.ExitDone, "report", address)
	wants(t, cli.ExitDone, "fetch", address, "--out", "s3://bucket/again")
	wants(t, cli.ExitDone, "diff", address, "s3://bucket/again")
	_, errs := wants(t, cli.ExitInput, "eval", address+"/runs/0007")
	if !strings.Contains(errs, address) || !strings.Contains(errs, "runs/") {
		t.Errorf("a run that is not there: %s", errs)
	}
	s.ExpectNoSecret(t)
	left, err := filepath.Glob(filepath.Join(os.Getenv("XDG_CACHE_HOME"), "gradwire", "stores", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("working folders are left: %v, %v", left, err)
	}
}

// A machine and its folders are lost at any request to the store. Another machine goes on from the store.
func TestRunGoesOnFromTheStoreAfterTheLossOfItsMachine(t *testing.T) {
	s := storetest.Start(t)
	plan := edit(t, small, "stop: {epochs: 2}", "stop: {epochs: 20}") + "record: events\ncheckpoint: {every: 500ms}\n"
	enter(t, edit(t, plan, "every: 0.5 epochs", "every: 5 epochs"))
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	wants(t, cli.ExitDone, "run", "plan.yaml", "--out", "whole", "--repeats", "3")
	const address = "s3://bucket/lost"
	how := "--out"
	for _, last := range []int64{2, 6, 11, 17, 30} {
		t.Setenv("XDG_CACHE_HOME", t.TempDir())
		ctx, cancel := context.WithCancel(t.Context())
		var requests atomic.Int64
		s.Disturb(func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
			if requests.Add(1) < last {
				return false
			}
			cancel()
			return storetest.Refuse(http.StatusForbidden, "AccessDenied")(w, r, next)
		})
		var out, errs bytes.Buffer
		args := []string{"run", "plan.yaml", "--repeats", "3", how, address}
		code := asGradwire(catalog.Default()).Run(ctx, args, &out, &errs)
		cancel()
		s.Disturb(nil)
		if last > 2 {
			how = "--continue"
		}
		if requests.Load() < last {
			continue // the run ended before the loss
		}
		if code == cli.ExitDone {
			t.Errorf("lost at request %d, it is done", last)
		}
		if last > 2 {
			if told := errs.String(); !strings.Contains(told, "is incomplete") && !strings.Contains(told, "denied") {
				t.Errorf("lost at request %d: %s", last, told)
			}
		}
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	wants(t, cli.ExitDone, "run", "--continue", address)
	wants(t, cli.ExitDone, "fetch", address, "--out", "fetched")
	if one, other := strings.Join(digests(t, "whole"), " "), strings.Join(digests(t, "fetched"), " "); one != other {
		t.Errorf("digests %s, of an uninterrupted run %s", other, one)
	}
	wants(t, cli.ExitDone, "diff", "whole/runs/0002", "fetched/runs/0002")
}

// A machine and its folders are lost once the store has a checkpoint of a run. Another machine goes on from
// the checkpoint. A run that ends before the store has a checkpoint is too short: a longer one follows it.
func TestRunGoesOnFromItsCheckpointInTheStore(t *testing.T) {
	s := storetest.Start(t)
	enter(t, small+"record: events\ncheckpoint: {every: 5s}\n")
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	address, length := "", ""
	for epochs, done := 100, true; done; epochs *= 3 {
		address, length = fmt.Sprintf("s3://bucket/%d", epochs), fmt.Sprintf("stop.epochs=%d", epochs)
		ctx, cancel := context.WithCancel(t.Context())
		var saved, lost atomic.Bool
		s.Disturb(func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
			switch {
			case lost.Load():
				return storetest.Refuse(http.StatusForbidden, "AccessDenied")(w, r, next)
			case r.Method == http.MethodPut && strings.Contains(r.URL.Path, ".state/"):
				saved.Store(true)
			case r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "manifest.json") && saved.Load():
				next.ServeHTTP(w, r)
				lost.Store(true)
				cancel()
				return true
			}
			return false
		})
		args := []string{"run", "plan.yaml", "--set", length, "--out", address}
		var out, errs bytes.Buffer
		done = asGradwire(catalog.Default()).Run(ctx, args, &out, &errs) == cli.ExitDone
		cancel()
		s.Disturb(nil)
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	_, told := wants(t, cli.ExitDone, "run", "--continue", address, "--from-checkpoint")
	if !strings.Contains(told, "goes on from its checkpoint") {
		t.Errorf("it began again: %s", told)
	}
	wants(t, cli.ExitDone, "fetch", address, "--out", "fetched")
	wants(t, cli.ExitDone, "run", "plan.yaml", "--set", length, "--out", "whole")
	if one, other := strings.Join(digests(t, "whole"), " "), strings.Join(digests(t, "fetched"), " "); one != other {
		t.Errorf("digests %s, of an uninterrupted run %s", other, one)
	}
}

// If a machine is lost at any time, a run in real time goes on from its newest checkpoint but one at the
// latest: the upload of the newest may be unfinished.
func TestLossOfAMachineLosesAtMostOneInterval(t *testing.T) {
	s := storetest.Start(t)
	enter(t, edit(t, small, "stop: {epochs: 2}", "stop: {time: 1m}")+"checkpoint: {every: 500ms, keep: 1000}\n")
	for i := range 2 {
		address := fmt.Sprintf("s3://bucket/%d", i)
		cache := t.TempDir()
		t.Setenv("XDG_CACHE_HOME", cache)
		ctx, cancel := context.WithCancel(t.Context())
		life := rand.N(1200 * time.Millisecond) // from the first checkpoint on
		lose := sync.OnceFunc(func() {
			time.AfterFunc(life, func() {
				s.Disturb(storetest.Refuse(http.StatusForbidden, "AccessDenied"))
				cancel()
			})
		})
		s.Disturb(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if strings.Contains(r.URL.Path, ".state/") {
				lose()
			}
			return false
		})
		var out, errs bytes.Buffer
		args := []string{"run", "plan.yaml", "--clock", "real", "--out", address}
		asGradwire(catalog.Default()).Run(ctx, args, &out, &errs)
		s.Disturb(nil)
		written, err := filepath.Glob(filepath.Join(cache, "gradwire", "stores", "*", "work", "*", "runs", "0000",
			"checkpoints", "*.state"))
		if err != nil || len(written) == 0 {
			t.Errorf("lost after %v, with no checkpoint: %s", life, errs.String())
			continue
		}
		dir, remove, err := store.Download(t.Context(), address, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		stored, _ := filepath.Glob(filepath.Join(dir, "runs", "0000", "checkpoints", "*.state"))
		if len(stored) < len(written)-1 {
			t.Errorf("lost after %v, %d checkpoints of %d are in the store", life, len(stored), len(written))
		}
		if err := remove(); err != nil {
			t.Error(err)
		}
	}
}

// A command checks that its store accepts a record before the first run, and before it submits a plan.
func TestStoreThatCannotBeWrittenIsNoticedAtTheStart(t *testing.T) {
	s := storetest.Start(t)
	enter(t, small)
	write(t, "copied.yaml", small+"checkpoint: {every: 1s}\n")
	wants(t, cli.ExitDone, "run", "plan.yaml", "--out", "s3://bucket/first")
	for want, c := range map[string]struct {
		disturb storetest.Disturb
		bucket  string
	}{
		"no such bucket":             {nil, "none"},
		"access is denied":           {storetest.ReadOnly, "bucket"},
		"does not know this access":  {storetest.Refuse(http.StatusForbidden, "InvalidAccessKeyId"), "bucket"},
		"secret key is not the acce": {storetest.Refuse(http.StatusForbidden, "SignatureDoesNotMatch"), "bucket"},
	} {
		for _, line := range []string{
			"run plan.yaml --out ADDRESS", "run copied.yaml --set checkpoint.to=ADDRESS --out here",
			"submit plan.yaml --join 127.0.0.1:1 --insecure --out ADDRESS",
			"node --name a --insecure --bind 127.0.0.1:0 --out ADDRESS", "fetch s3://bucket/first --out ADDRESS",
		} {
			address := "s3://" + c.bucket + "/second"
			s.Disturb(c.disturb)
			code, out, errs := gradwireHere(strings.Fields(strings.ReplaceAll(line, "ADDRESS", address))...)
			s.Disturb(nil)
			if code != cli.ExitInput || !strings.Contains(errs, want) || strings.Contains(out, "accuracy") {
				t.Errorf("%s: exit code %d, want %q: %s", line, code, want, errs)
			}
			if runs, _ := filepath.Glob("here/runs/*/run.json"); len(runs) > 0 {
				t.Errorf("%s made runs: %v", line, runs)
			}
			if err := os.RemoveAll("here"); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// gradwire run adds its flags to the error about a folder or a store that has a record. The error of package
// driver names no flags, because programs that use the package have other flags.
func TestRunNamesTheFlagsThatHelpWithAnExistingRecord(t *testing.T) {
	storetest.Start(t)
	enter(t, small)
	for out, flags := range map[string]string{
		"s3://bucket/first": "; --continue goes on with it, or name another path",
		"first":             "; --out names another one, --continue goes on with the record in it",
	} {
		wants(t, cli.ExitDone, "run", "plan.yaml", "--out", out)
		code, _, errs := gradwireHere("run", "plan.yaml", "--out", out)
		if code != cli.ExitInput || !strings.Contains(errs, flags) {
			t.Errorf("exit code %d, want %q: %s", code, flags, errs)
		}
		p, err := driver.Load("plan.yaml")
		if err != nil {
			t.Fatal(err)
		}
		_, err = driver.Run(t.Context(), p, driver.Options{Out: out})
		if err == nil || strings.Contains(err.Error(), "--") {
			t.Errorf("the error of the package is: %v", err)
		}
	}
}

func TestPasswordInAnAddressIsRefusedAndNotRepeated(t *testing.T) {
	storetest.Start(t)
	for _, address := range []string{"s3://user:hunter2@bucket/x", "s3://bucket/x?secret=hunter2"} {
		enter(t, small+"checkpoint: {every: 1s, to: \""+address+"\"}\n")
		for _, args := range [][]string{
			{"run", "plan.yaml"}, {"run", "plan.yaml", "--set", "checkpoint.to=s3://bucket/x", "--out", address},
			{"run", "--continue", address}, {"report", address}, {"fetch", address}, {"plan", "check", "plan.yaml"},
		} {
			code, out, errs := gradwireHere(args...)
			if code != cli.ExitInput || strings.Contains(out+errs, "hunter2") || exists("results")() {
				t.Errorf("%s: exit code %d: %s", strings.Join(args, " "), code, errs)
			}
		}
	}
}

// A flag either accepts the address of a store or refuses it. No command makes a folder named s3:.
func TestEveryFlagTakesAddressesOrRefusesThem(t *testing.T) {
	takes := map[string]bool{"run --out": true, "run --continue": true, "node --out": true, "submit --out": true,
		"fetch --out": true}
	enter(t, small)
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
		if cmd.RunE == nil || !cmd.HasParent() || cmd.Name() == "completion" || cmd.Name() == "help" {
			return
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			name := strings.TrimPrefix(cmd.CommandPath(), "gradwire ") + " --" + f.Name
			if f.Value.Type() != "string" || takes[name] {
				return
			}
			if err := cmd.Flags().Set(f.Name, "s3://bucket/x"); err != nil {
				return
			}
			err := cmd.RunE(cmd, []string{"plan.yaml"})
			if err == nil || !strings.Contains(err.Error(), "s3://bucket/x") {
				t.Errorf("%s s3://bucket/x: %v", name, err)
			}
			if err := cmd.Flags().Set(f.Name, f.DefValue); err != nil {
				t.Error(err)
			}
			f.Changed = false
		})
	}
	var out, errs bytes.Buffer
	walk(asGradwire(catalog.Default()).Commands(&out, &errs))
	if exists("s3:")() {
		t.Error("a folder s3: was made")
	}
}
