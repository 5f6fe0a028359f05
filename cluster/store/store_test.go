package store_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/cluster/store"
	"github.com/gradwire/gradwire/cluster/store/storetest"
)

// write writes the files of a record to a folder.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(
			os.WriteFile(name+".new", []byte(text), 0o600),
			os.Rename(name+".new", name),
		); err != nil {
			t.Fatal(err)
		}
	}
}

// read returns the files of a folder.
func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		name, _ = filepath.Rel(dir, name)
		all[filepath.ToSlash(name)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// fetch returns the files of the record at an address.
func fetch(t *testing.T, address string) (map[string]string, error) {
	t.Helper()
	dir, remove, err := store.Download(t.Context(), address, nil, nil)
	if err != nil {
		return nil, err
	}
	all := read(t, dir)
	if err := remove(); err != nil {
		t.Fatal(err)
	}
	return all, nil
}

func parse(t *testing.T, text string) store.Address {
	t.Helper()
	at, err := store.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// first and second are the files of a record at two times.
func first() map[string]string {
	return map[string]string{
		"plan.yaml":                              "name: x\n",
		"runs/0000/run.json":                     "{}",
		"runs/0000/model.safetensors":            "model",
		"runs/0001/checkpoints/1.state/state.pb": "one",
		"runs/0001/events.jsonl.partial":         "a\n",
		"empty":                                  "",
	}
}

func second() map[string]string {
	return map[string]string{
		"plan.yaml":                              "name: x\n",
		"runs/0000/run.json":                     "{}",
		"runs/0000/model.safetensors":            "model",
		"runs/0001/checkpoints/2.state/state.pb": "two",
		"runs/0001/events.jsonl.partial":         "a\nb\n",
		"empty":                                  "",
		"summary.json":                           "{}",
	}
}

// copyTo uploads a folder to an address.
func copyTo(ctx context.Context, t *testing.T, dir, address string, mode store.Mode) error {
	t.Helper()
	m, err := store.UploadFolder(ctx, parse(t, address), dir, "plan.yaml", mode, nil)
	if err != nil {
		return err
	}
	return m.Close(ctx, 0)
}

func TestRecordIsTheSameBehindEveryStore(t *testing.T) {
	s := storetest.Start(t)
	for _, address := range []string{"s3://bucket", "s3://bucket-2/a/b", filepath.Join(t.TempDir(), "plain"),
		"file://" + filepath.ToSlash(t.TempDir()) + "/url"} {
		dir := t.TempDir()
		write(t, dir, first())
		write(t, dir, map[string]string{".lock": "1", "runs/0001/checkpoints/2.state.partial/state.pb": "half"})
		m, err := store.UploadFolder(t.Context(), parse(t, address), dir, "plan.yaml", store.MustBeEmpty, nil)
		if err != nil {
			t.Fatal(err)
		}
		if is, err := fetch(t, address); err != nil || gocmp.Diff(first(), is) != "" {
			t.Errorf("%s: %v %s", address, err, gocmp.Diff(first(), is))
		}
		next := second()
		if strings.HasPrefix(address, "file://") {
			next["large"] = strings.Repeat("0123456789abcdef", 1<<20+3) // larger than an object
		}
		write(t, dir, next)
		if err := os.RemoveAll(filepath.Join(dir, "runs/0001/checkpoints/1.state")); err != nil {
			t.Fatal(err)
		}
		m.Changed()
		if err := m.Close(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if is, err := fetch(t, address); err != nil || !maps.Equal(next, is) {
			t.Errorf("%s: %v", address, err)
		}
		if !strings.Contains(address, "://") {
			continue // a path without a scheme is opened as it is
		}
		run, remove, err := store.Download(t.Context(), address+"/runs/0000", nil, nil)
		if err != nil {
			t.Errorf("a run of %s: %v", address, err)
			continue
		}
		want := maps.Clone(next)
		maps.DeleteFunc(want, func(name, _ string) bool { return strings.HasPrefix(name, "runs/0001") })
		is := read(t, filepath.Dir(filepath.Dir(run)))
		if !slices.Equal(slices.Sorted(maps.Keys(is)), slices.Sorted(maps.Keys(want))) {
			t.Errorf("a run of %s comes with %v", address, slices.Sorted(maps.Keys(is)))
		}
		if err := remove(); err != nil {
			t.Error(err)
		}
	}
	for _, key := range s.Keys(t) {
		if strings.Contains(key, "1.state") {
			t.Errorf("%s is left, which no manifest lists", key)
		}
	}
}

func TestPartialUploadIsInvisible(t *testing.T) {
	s := storetest.Start(t)
	for cut := 1; ; cut++ {
		address := fmt.Sprintf("s3://bucket/%d", cut)
		dir := t.TempDir()
		write(t, dir, first())
		if err := copyTo(t.Context(), t, dir, address, store.MustBeEmpty); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		write(t, dir, second())
		ctx, cancel := context.WithCancel(t.Context())
		var requests atomic.Int64
		s.Disturb(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if requests.Add(1) < int64(cut) {
				return false
			}
			cancel() // the process dies
			return storetest.Reset(w, r, nil)
		})
		err := copyTo(ctx, t, dir, address, store.MustHoldRecord)
		cancel()
		s.Disturb(nil)
		is, e := fetch(t, address)
		if e != nil || gocmp.Diff(is, first()) != "" && gocmp.Diff(is, second()) != "" {
			t.Errorf("cut off at request %d (%v), the record is neither the previous nor the next one: %v", cut, err, e)
		}
		if err == nil {
			if cut < 8 {
				t.Errorf("the second upload took %d requests", cut)
			}
			return
		}
		if err := copyTo(t.Context(), t, dir, address, store.MustHoldRecord); err != nil {
			t.Errorf("after a cut at request %d: %v", cut, err)
		}
		if is, err := fetch(t, address); err != nil || gocmp.Diff(is, second()) != "" {
			t.Errorf("the upload after a cut at request %d: %v", cut, err)
		}
		left := 0
		for _, key := range s.Keys(t) {
			if strings.HasPrefix(key, fmt.Sprintf("%d/", cut)) {
				left++
			}
		}
		if want := len(second()); left != want { // the manifest counts; the empty file has no object
			t.Errorf("cut off at request %d, %d objects are left; %d are needed", cut, left, want)
		}
	}
}

func TestFailedRequestsAreRepeated(t *testing.T) {
	s := storetest.Start(t)
	dir := t.TempDir()
	write(t, dir, second())
	var requests atomic.Int64
	s.Disturb(func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
		switch requests.Add(1) % 16 {
		case 1:
			return storetest.Refuse(500, "InternalError")(w, r, next)
		case 5:
			return storetest.Refuse(503, "SlowDown")(w, r, next)
		case 9:
			return storetest.Reset(w, r, next)
		case 13:
			return storetest.Truncate(w, r, next)
		}
		return false
	})
	var told atomic.Int64
	m, err := store.UploadFolder(t.Context(), parse(t, "s3://bucket/x"), dir, "plan.yaml", store.MustBeEmpty,
		func(string) { told.Add(1) })
	if err == nil {
		err = m.Close(t.Context(), 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	if is, err := fetch(t, "s3://bucket/x"); err != nil || gocmp.Diff(second(), is) != "" {
		t.Error(err)
	}
	if told.Load() == 0 {
		t.Error("no repetition was told")
	}
}

func TestDamageIsNamed(t *testing.T) {
	s := storetest.Start(t)
	dir := t.TempDir()
	write(t, dir, first())
	if err := copyTo(t.Context(), t, dir, "s3://bucket/x", store.MustBeEmpty); err != nil {
		t.Fatal(err)
	}
	put := func(key string, b []byte) {
		t.Helper()
		when := map[string]string{"Last-Modified": "Fri, 27 Nov 2026 12:00:00 GMT"}
		_, err := s.Backend.PutObject(storetest.Bucket, key, when, bytes.NewReader(b), int64(len(b)), nil)
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range s.Keys(t) {
		whole := s.Object(t, key)
		for at := 0; at < len(whole); at += 1 + len(whole)/64 {
			bad := slices.Clone(whole)
			bad[at] ^= 1
			put(key, bad)
			_, err := fetch(t, "s3://bucket/x")
			if !errors.Is(err, store.ErrDamaged) && !strings.Contains(fmt.Sprint(err), "has the format") ||
				!strings.Contains(err.Error(), key) {
				t.Errorf("%s, a bit of byte %d flipped: %v", key, at, err)
			}
		}
		for _, bad := range [][]byte{whole[:len(whole)-1], append(slices.Clone(whole), 'x'), {}} {
			put(key, bad)
			_, err := fetch(t, "s3://bucket/x")
			if !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), key) {
				t.Errorf("%s of %d bytes instead of %d: %v", key, len(bad), len(whole), err)
			}
		}
		if _, err := s.Backend.DeleteObject(storetest.Bucket, key); err != nil {
			t.Fatal(err)
		}
		if _, err := fetch(t, "s3://bucket/x"); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("without %s: %v", key, err)
		}
		put(key, whole)
	}
	if _, err := fetch(t, "s3://bucket/x"); err != nil {
		t.Error(err)
	}
}

func TestSecondWriterTakesOver(t *testing.T) {
	storetest.Start(t)
	dir := t.TempDir()
	write(t, dir, first())
	one, err := store.UploadFolder(t.Context(), parse(t, "s3://bucket/x"), dir, "plan.yaml", store.MustBeEmpty, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := copyTo(t.Context(), t, dir, "s3://bucket/x", store.MustBeEmpty); !errors.Is(err, store.ErrExists) {
		t.Errorf("a new record where there is one: %v", err)
	}
	if err := copyTo(t.Context(), t, dir, "s3://bucket/x", store.MustHoldRecord); err != nil {
		t.Error(err)
	}
	write(t, dir, second())
	err = one.Close(t.Context(), 0)
	if err == nil || !strings.Contains(err.Error(), store.ErrTaken.Error()) {
		t.Errorf("the first writer after the second one: %v", err)
	}
	other := t.TempDir()
	write(t, other, map[string]string{"plan.yaml": "name: y\n"})
	err = copyTo(t.Context(), t, other, "s3://bucket/x", store.MustHoldRecord)
	if !errors.As(err, new(*refusal.InputError)) {
		t.Errorf("another plan's record: %v", err)
	}
}

// After a process has died, the next one on this machine reuses its working folder, and one on another
// machine downloads the record.
func TestWorkingFolderOutlivesItsProcess(t *testing.T) {
	s := storetest.Start(t)
	at := parse(t, "s3://bucket/first/record")
	start := func(mode store.Mode) *store.Uploader {
		t.Helper()
		m, err := store.OpenWorkFolder(t.Context(), at, mode, nil)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	m := start(store.MustBeEmpty)
	write(t, m.Dir, first())
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := store.OpenWorkFolder(t.Context(), at, store.MustHoldRecord, nil)
	if err == nil || !strings.Contains(err.Error(), "written") {
		t.Errorf("two programs have one working folder: %v", err)
	}
	if err := m.Close(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(m.Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the working folder is left: %v", err)
	}
	m = start(store.MustHoldRecord)
	if diff := gocmp.Diff(first(), read(t, m.Dir)); diff != "" {
		t.Error(diff)
	}
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	write(t, m.Dir, map[string]string{"summary.json": "{}"})
	s.Disturb(storetest.Refuse(403, "AccessDenied"))
	err = m.Close(t.Context(), 0)
	s.Disturb(nil)
	if err == nil || !strings.Contains(err.Error(), "is incomplete (files missing: 1, of 2 bytes)") ||
		!strings.Contains(err.Error(), m.Dir) {
		t.Errorf("what is not uploaded: %v", err)
	}
	m = start(store.MustHoldRecord)
	if _, err := os.Stat(filepath.Join(m.Dir, "summary.json")); err != nil {
		t.Error("what was not uploaded is lost:", err)
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	s := storetest.Start(t)
	dir := t.TempDir()
	write(t, dir, first())
	for name, c := range map[string]struct {
		disturb storetest.Disturb
		address string
		env     map[string]string
		wants   []string
		once    bool // whether the error is permanent, so that one request shows it
	}{
		"no bucket": {address: "s3://other/x", wants: []string{"s3://other/x", "no such bucket", s.URL}, once: true},
		"denied": {disturb: storetest.Refuse(403, "AccessDenied"), once: true,
			wants: []string{"reading s3://bucket/x/", "denied", "s3:GetObject", "AWS_ACCESS_KEY_ID"}},
		"read-only": {disturb: storetest.ReadOnly, wants: []string{"writing s3://bucket/x/", "denied", "s3:PutObject"}},
		"wrong secret": {disturb: storetest.Refuse(403, "SignatureDoesNotMatch"), wants: []string{"secret key"},
			once: true},
		"wrong key": {disturb: storetest.Refuse(403, "InvalidAccessKeyId"), wants: []string{"access key"}, once: true},
		"expired":   {disturb: storetest.Refuse(400, "ExpiredToken"), wants: []string{"expired"}, once: true},
		"clock":     {disturb: storetest.Refuse(403, "RequestTimeTooSkewed"), wants: []string{"clock"}, once: true},
		"region": {disturb: storetest.Refuse(400, "AuthorizationHeaderMalformed"), wants: []string{"AWS_REGION"},
			once: true},
		"bad endpoint": {env: map[string]string{"AWS_ENDPOINT_URL_S3": "http://u:" + storetest.Secret + "@h"},
			wants: []string{"AWS_ENDPOINT_URL", "http://HOST:PORT"}},
		"no credentials": {env: map[string]string{"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "",
			"AWS_SHARED_CREDENTIALS_FILE": filepath.Join(dir, "none")},
			wants: []string{"s3://bucket/x", "AWS_ACCESS_KEY_ID", ".aws/credentials"}},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			var requests atomic.Int64
			s.Disturb(func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
				if r.Method == http.MethodGet { // an aborted case may still have a PUT under way
					requests.Add(1)
				}
				return c.disturb != nil && c.disturb(w, r, next)
			})
			defer s.Disturb(nil)
			err := copyTo(t.Context(), t, dir, cmp.Or(c.address, "s3://bucket/x"), store.MustBeEmpty)
			for _, want := range c.wants {
				if !strings.Contains(fmt.Sprint(err), want) {
					t.Errorf("the error does not say %q: %v", want, err)
				}
			}
			if strings.Contains(fmt.Sprint(err), storetest.Secret) {
				t.Errorf("the error tells a secret: %v", err)
			}
			if n := requests.Load(); c.once && n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
	if _, err := fetch(t, "s3://bucket/x"); !errors.Is(err, store.ErrNoRecord) {
		t.Errorf("nothing was stored: %v", err)
	}
}

// A command ends although its store never answers.
func TestCloseGivesUpOnAStoreThatHangs(t *testing.T) {
	s := storetest.Start(t)
	dir := t.TempDir()
	write(t, dir, first())
	ctx, interrupt := context.WithCancel(t.Context())
	m, err := store.UploadFolder(ctx, parse(t, "s3://bucket/x"), dir, "plan.yaml", store.MustBeEmpty, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Disturb(storetest.Hang)
	write(t, dir, second())
	m.Changed()
	interrupt()
	began := time.Now()
	err = m.Close(ctx, 100*time.Millisecond)
	if took := time.Since(began); took > 25*time.Second { // less than the 30 s of a request that hangs
		t.Errorf("it took %v", took)
	}
	for _, want := range []string{"the upload to s3://bucket/x is incomplete (files missing: 3", dir} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
	s.Disturb(nil)
	if is, err := fetch(t, "s3://bucket/x"); err != nil || gocmp.Diff(first(), is) != "" {
		t.Error(err, gocmp.Diff(first(), is))
	}
}

// The manifest.json of another program makes no store of its folder.
func TestManifestOfAnotherProgramIsNoRecord(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, ".", map[string]string{"manifest.json": "{\"name\": \"a web page\"}", "plan.yaml": "name: x\n"})
	for _, text := range []string{"quickstart", "plan.yaml", "none.yaml", ".", "manifest.json", "a/b"} {
		local, _, err := store.Download(t.Context(), text, nil, nil)
		if err != nil || local != text || store.IsStored(text) {
			t.Errorf("%s: %s, %v", text, local, err)
		}
	}
}

func TestCredentialsComeFromTheUsualPlaces(t *testing.T) {
	s := storetest.Start(t)
	name := filepath.Join(t.TempDir(), "credentials")
	text := "[other]\naws_access_key_id = INFILE\naws_secret_access_key = B\naws_session_token = filed\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, dir, first())
	for want, env := range map[string]map[string]string{
		"Credential=INFILE/ us-east-1 filed": {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "",
			"AWS_SHARED_CREDENTIALS_FILE": name, "AWS_PROFILE": "other"},
		"Credential=AKIATESTING/ eu-west-9 a-token": {"AWS_SESSION_TOKEN": "a-token", "AWS_REGION": "eu-west-9",
			"AWS_ENDPOINT_URL": s.URL, "AWS_ENDPOINT_URL_S3": ""},
		"Credential=AKIATESTING/ eu-west-8": {"AWS_DEFAULT_REGION": "eu-west-8"},
	} {
		t.Run(want, func(t *testing.T) {
			for k, v := range env {
				t.Setenv(k, v)
			}
			s.Disturb(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				is := r.Header.Get("Authorization") + r.Header.Get("X-Amz-Security-Token")
				for _, want := range strings.Fields(want) {
					if !strings.Contains(is, want) {
						t.Errorf("the request lacks %q", want)
					}
				}
				return false
			})
			defer s.Disturb(nil)
			if err := copyTo(t.Context(), t, dir, "s3://bucket/x", store.MayHoldRecord); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"s3://b/a/c/":       "s3://b/a/c",
		"S3://b":            "s3://b",
		"file:///a/b":       filepath.FromSlash("/a/b"),
		"results/x":         "results/x",
		"":                  "is empty",
		"s3:///x":           "names no bucket",
		"s3:/b/x":           "neither an address nor a folder",
		"S3:b":              "neither an address nor a folder",
		"s3://b/a/../c":     "\"..\" parts",
		"s3://b//c":         "parts in its path",
		"s3://u:p@b/x":      "user or password",
		"s3://u@b/x":        "user or password",
		"file://u:p@h/x":    "user or password",
		"s3://b/x?X-Amz=p":  "no query",
		"gs://b/x":          "no store has the scheme \"gs\"",
		"https://u:p@b.s/x": "user or password",
		"file://host/x":     "three slashes",
	} {
		at, err := store.Parse(text)
		is := at.String()
		if err != nil {
			is = err.Error()
			if strings.Contains(is, "u:p") || strings.Contains(is, "X-Amz=p") {
				t.Errorf("%s: the error repeats the password: %s", text, is)
			}
			if !strings.Contains(is, "accepted") && !strings.Contains(is, "AWS_ACCESS_KEY_ID") {
				t.Errorf("%s: the error does not say what is accepted: %s", text, is)
			}
		}
		if err == nil && is != want || !strings.Contains(is, want) {
			t.Errorf("%s: %s; want %s", text, is, want)
		}
	}
}

func BenchmarkMirror40MB(b *testing.B) {
	storetest.Start(b)
	dir := b.TempDir()
	block := make([]byte, 1<<20)
	for i := range 40 {
		block[0] = byte(i)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), block, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(40 << 20)
	for n := 0; b.Loop(); n++ {
		at, _ := store.Parse(fmt.Sprintf("s3://bucket/%d", n))
		m, err := store.UploadFolder(b.Context(), at, dir, "0", store.MustBeEmpty, nil)
		if err == nil {
			err = m.Close(b.Context(), 0)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

func TestManifestNamesItsFaultBesideAnUnknownKey(t *testing.T) {
	s := storetest.Start(t)
	text := "{\"surprise\": 1,\n\"format\": 5}"
	when := map[string]string{"Last-Modified": "Fri, 27 Nov 2026 12:00:00 GMT"}
	_, err := s.Backend.PutObject(storetest.Bucket, "x/manifest.json", when, strings.NewReader(text), int64(len(text)),
		nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = fetch(t, "s3://bucket/x")
	if !errors.Is(err, store.ErrDamaged) ||
		!strings.HasSuffix(err.Error(), `line 2: key "format" is the number 5; a string is accepted`) {
		t.Error(err)
	}
}
