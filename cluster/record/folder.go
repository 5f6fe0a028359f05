package record

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/gradwire/gradwire/cluster/record/lockfile"
	"github.com/gradwire/gradwire/cluster/record/safetensors"
)

// The errors that a program may want to tell apart.
var (
	// ErrExists says that a folder holds something already.
	ErrExists = errors.New("this folder exists and is not empty")
	// ErrOtherPlan says that a folder was made by another plan.
	ErrOtherPlan = errors.New("this folder was made by another plan")
	// ErrDamaged says that the run.json of a finished run cannot be read or has impossible figures.
	ErrDamaged = errors.New("this run cannot be used")
	// ErrDamagedSummary means that summary.json is damaged, or that a newer program wrote it.
	ErrDamagedSummary = errors.New("this summary cannot be used")
	// ErrNoFolder means that the path of a record leads to a file.
	ErrNoFolder = errors.New("this is a file, not the folder of a record")
	// ErrNoRecord says that a folder holds no plan.yaml.
	ErrNoRecord = errors.New("this folder holds no record: it has no plan.yaml")
)

const (
	// MaxFile is the most bytes of a file that is read back. A run of 10,000 nodes that have
	// each chosen 100 others has two million links, and takes 330 MB.
	MaxFile = 512 << 20
	// MaxRuns is the most runs that a folder can hold.
	MaxRuns = 1_000_000

	// PlanName is the file of the plan, with all that was set.
	PlanName = "plan.yaml"

	summaryName = "summary.json"
	runsName    = "runs"
	runName     = "run.json"
	modelName   = "model.safetensors"
	modelsName  = "models.safetensors"
	eventsName  = "events.jsonl"
)

// Folder is the record of a plan's runs on disk. A run is in it as a whole or not at
// all, even if the program is killed while it writes. Methods may be called from
// several goroutines, for different runs.
type Folder struct {
	dir  string
	disk disk

	mu       sync.Mutex
	plan     []byte // nil until it is saved
	runs     map[int]Run
	finished map[string]int // by point and seed
	events   map[int]bool   // runs whose events are being written
	unlock   func() error   // nil unless this program may write
	closed   bool           // no further run is saved
	filled   [len(lists)]bool
}

// saved is run.json.
type saved struct {
	Version int `json:"version"`
	Run
	Data Data `json:"data"`
}

// Create makes a new folder, into which nobody else may write until Close; its parents may be
// missing. An existing folder that is not empty is refused with ErrExists.
func Create(dir string) (*Folder, error) { return create(dir, osDisk{}) }

func create(dir string, d disk) (*Folder, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("output folder: %w", err)
	}
	if len(entries) > 0 {
		return nil, fmt.Errorf("output folder %s: %w", dir, ErrExists)
	}
	f := newFolder(dir, d)
	if err := d.MakeDir(filepath.Join(dir, runsName)); err != nil {
		return nil, fmt.Errorf("output folder %s: %w", dir, err)
	}
	if f.unlock, err = lockfile.Lock(dir); err != nil {
		return nil, fmt.Errorf("output folder: %w", err)
	}
	return f, nil
}

func newFolder(dir string, d disk) *Folder {
	return &Folder{dir: dir, disk: d, runs: map[int]Run{}, finished: map[string]int{}, events: map[int]bool{}}
}

// readPlan reads the plan of a folder, which every record has.
func readPlan(dir string) ([]byte, error) {
	plan, err := readFile(dir, PlanName)
	if err == nil {
		return plan, nil
	}
	info, statErr := os.Stat(dir)
	var missing *fs.PathError
	switch {
	case errors.As(statErr, &missing):
		return nil, fmt.Errorf("%s is no folder of a record: %w", dir, missing.Err)
	case statErr == nil && !info.IsDir():
		return nil, fmt.Errorf("%s: %w", dir, ErrNoFolder)
	case IsRun(dir) && IsRecord(filepath.Join(dir, "..", "..")):
		return nil, fmt.Errorf("%s: %w; it is a run of the record %s", dir, ErrNoRecord, filepath.Join(dir, "..", ".."))
	case IsRecord(filepath.Join(dir, "..")):
		return nil, fmt.Errorf("%s: %w; it is a folder of the record %s", dir, ErrNoRecord, filepath.Join(dir, ".."))
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: %w", dir, ErrNoRecord)
	}
	return nil, err
}

// Open reads back what is finished in a folder. Runs that were not saved to the end
// are passed over; a run that is there but cannot be read is an error that names its
// file. ErrNoRecord stands for a folder that no plan has been saved in.
func Open(dir string) (*Folder, error) {
	f := newFolder(dir, osDisk{})
	plan, err := readPlan(dir)
	if err != nil {
		return nil, err
	}
	f.plan = plan
	entries, err := os.ReadDir(filepath.Join(dir, runsName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, entry := range entries {
		if n, ok := runNumber(entry.Name()); ok {
			if err := f.adopt(n); err != nil {
				return nil, err
			}
		}
	}
	return f, nil
}

// runNumber reads the name of a run's folder.
func runNumber(name string) (int, bool) {
	n, err := strconv.Atoi(name)
	return n, err == nil && n >= 0 && n < MaxRuns && fmt.Sprintf("%04d", n) == name
}

// adopt takes a finished run in, if it is one.
func (f *Folder) adopt(n int) error {
	s, err := f.read(n)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if other, ok := f.finished[runKey(s.Point, s.Seed)]; ok {
		return fmt.Errorf("%s: run %d has the same point (%v) and seed (%d): %w; delete the folder of one of them",
			f.runPath(n, runName), other, s.Point, s.Seed, ErrDamaged)
	}
	f.remember(&s)
	return nil
}

// remember notes a finished run; f.mu is held, or nobody else has f.
func (f *Folder) remember(s *saved) {
	f.runs[s.Number] = s.Run
	f.finished[runKey(s.Point, s.Seed)] = s.Number
	for i, l := range lists {
		f.filled[i] = f.filled[i] || l.filled(&s.Data)
	}
}

func runKey(p Point, seed uint64) string { return fmt.Sprintf("%d %s", seed, p.Key()) }

func (f *Folder) runPath(n int, name string) string {
	return filepath.Join(f.dir, runFolder(n), name)
}

// runFolder is the folder of a run below its record's.
func runFolder(n int) string { return filepath.Join(runsName, fmt.Sprintf("%04d", n)) }

// RunFile is the path, below the record's folder, of the file that marks a run as finished.
func RunFile(n int) string { return filepath.Join(runFolder(n), runName) }

// Dir returns the folder's path.
func (f *Folder) Dir() string { return f.dir }

// Plan returns the text of the plan that the folder was made by; nil before SavePlan.
func (f *Folder) Plan() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.plan)
}

// SavePlan writes the resolved plan. Where the folder has one already, it must be
// the same: otherwise ErrOtherPlan, with the first line that differs.
func (f *Folder) SavePlan(text string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.plan != nil {
		if line, was, is := firstDifference(string(f.plan), text); line > 0 {
			return fmt.Errorf("%s: %w: line %d was %q there and is %q now; a changed plan needs a new folder",
				filepath.Join(f.dir, PlanName), ErrOtherPlan, line, was, is)
		}
		return nil
	}
	return f.writePlan(text)
}

// writePlan writes the plan; f.mu is held.
func (f *Folder) writePlan(text string) error {
	err := writeFile(f.disk, filepath.Join(f.dir, PlanName), []byte(text))
	if err == nil {
		f.plan = []byte(text)
	}
	return err
}

// RunDir is the folder of run n, which may not be there yet.
func (f *Folder) RunDir(n int) string { return f.runPath(n, "") }

// EventsWriter opens the file for the events of run n, of which an earlier attempt has written so
// many bytes that are to stay. SaveRun gives it its final name, so Close must be called before;
// without SaveRun it stays a partial file.
func (f *Folder) EventsWriter(n int, bytes int64) (io.WriteCloser, error) {
	path := f.runPath(n, eventsName)
	err := f.makeRun(n)
	var file diskFile
	if err == nil {
		file, err = f.disk.Create(path+partial, bytes)
	}
	if err != nil {
		return nil, writing(path, err)
	}
	f.mu.Lock()
	f.events[n] = true
	f.mu.Unlock()
	return &eventsFile{diskFile: file, path: path}, nil
}

// eventsFile names itself in errors and is on the disk when it is closed.
type eventsFile struct {
	diskFile
	path string
}

func (e *eventsFile) Write(b []byte) (int, error) {
	n, err := e.diskFile.Write(b)
	return n, writing(e.path, err)
}

func (e *eventsFile) Close() error { return writing(e.path, cmp.Or(e.Sync(), e.diskFile.Close())) }

// ErrClosed says that a run was to be saved after its folder was closed.
var ErrClosed = errors.New("the record is closed")

// SaveRun writes run n: its models, its events if EventsWriter was asked for them, and at last
// run.json, with which the run is finished. r.Number is set to n, and what follows from the curve
// is filled in; a run without an Outcome is Done, one without an Of is judged by the Mean. A failed
// run may have no models. A failed run that was saved before is replaced.
// After Close it returns ErrClosed.
func (f *Folder) SaveRun(n int, r Run, d Data, m Models) error {
	if n < 0 || n >= MaxRuns {
		return fmt.Errorf("run %d: a folder holds runs 0 to %d", n, MaxRuns-1)
	}
	f.mu.Lock()
	closed := f.closed
	f.mu.Unlock()
	if closed {
		return fmt.Errorf("run %d: %w", n, ErrClosed)
	}
	r.Number = n
	r.Outcome, r.Of = cmp.Or(r.Outcome, Done), cmp.Or(r.Of, Mean)
	r.complete(&d)
	run := saved{Version: Version, Run: r, Data: d}
	text, err := run.encode()
	if err != nil {
		return writing(f.runPath(n, runName), err)
	}
	if err := f.writeRun(&r, text, m); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.remember(&run)
	return nil
}

// encode is the text of run.json.
func (s *saved) encode() ([]byte, error) {
	if err := s.check(s.Number); err != nil {
		return nil, err
	}
	text, err := json.Marshal(s)
	if len(text) > MaxFile {
		return nil, fmt.Errorf("%d bytes are more than the %d that can be read back", len(text), MaxFile)
	}
	return append(text, '\n'), err
}

// makeRun makes the folder of a run. If the record was deleted, it fails rather than restore a part.
func (f *Folder) makeRun(n int) error {
	if _, err := os.Stat(filepath.Join(f.dir, runsName)); err != nil {
		return err
	}
	return f.disk.MakeDir(f.RunDir(n))
}

// writeRun writes a run's files, the one that finishes it last.
func (f *Folder) writeRun(r *Run, text []byte, m Models) error {
	n := r.Number
	path := f.runPath(n, runName)
	if err := f.makeRun(n); err != nil {
		return writing(path, err)
	}
	metadata := map[string]string{"seed": strconv.FormatUint(r.Seed, 10), "point": r.Point.String()}
	maps.Copy(metadata, m.Metadata)
	m.Metadata = metadata
	if err := f.writeModels(n, &m); err != nil {
		return err
	}
	if err := f.commitEvents(n); err != nil {
		return err
	}
	return writeFile(f.disk, path, text)
}

// writeModels writes a run's models, and removes what an earlier attempt at a run that failed has
// left of others.
func (f *Folder) writeModels(n int, m *Models) error {
	for _, file := range []struct {
		name  string
		has   bool
		write func(w io.Writer) error
	}{
		{modelName, m.Judged != nil, func(w io.Writer) error {
			return safetensors.Write(w, m.Tensors, m.Metadata, m.Judged)
		}},
		{modelsName, len(m.Nodes) > 0, m.writeNodes},
	} {
		path := f.runPath(n, file.name)
		if file.has {
			if err := replace(f.disk, path, file.write); err != nil {
				return err
			}
		} else if err := f.disk.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return writing(path, err)
		}
	}
	return nil
}

func (f *Folder) commitEvents(n int) error {
	f.mu.Lock()
	wanted := f.events[n]
	delete(f.events, n)
	f.mu.Unlock()
	if !wanted {
		return nil
	}
	path := f.runPath(n, eventsName)
	return writing(path, commit(f.disk, path))
}

// Finished returns the number of the saved run of a point and seed. A run that failed is not
// finished: it is to be made again, and to be saved under its number.
func (f *Folder) Finished(p Point, seed uint64) (n int, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, ok = f.finished[runKey(p, seed)]
	return n, ok && f.runs[n].Outcome != Failed
}

// Runs returns the saved runs by rising number.
func (f *Folder) Runs() []Run {
	f.mu.Lock()
	defer f.mu.Unlock()
	runs := []Run{}
	for _, n := range slices.Sorted(maps.Keys(f.runs)) {
		runs = append(runs, f.runs[n])
	}
	return runs
}

// Data reads back what was counted during run n.
func (f *Folder) Data(n int) (Data, error) {
	s, err := f.read(n)
	return s.Data, err
}

// Trace is what figures are drawn of.
type Trace struct {
	Curve    []Evaluation
	Measured []Measurement
	// Links are nil for all but the first run of a point: others have the same network.
	Links   []Link
	Updates []Update
}

// MaxTraces is how many traces are read back of a record: figures show no more, and a record may
// have a million runs.
const MaxTraces = 500

// Traces reads back the traces of the given runs, in their order. Of more than MaxTraces runs those
// of the first runs of each point are read, and the others are empty.
func (f *Folder) Traces(runs []Run) ([]Trace, error) {
	traces := make([]Trace, len(runs))
	points := map[string]int{}
	for _, r := range runs {
		points[r.Point.Key()]++
	}
	each, left := max(MaxTraces/max(len(points), 1), 1), MaxTraces
	if len(runs) <= MaxTraces {
		each, left = len(runs), len(runs)
	}
	seen := map[string]int{}
	for i, r := range runs {
		key := r.Point.Key()
		if seen[key] == each || left == 0 {
			continue
		}
		d, err := f.Data(r.Number)
		if err != nil {
			return nil, err
		}
		traces[i] = Trace{Curve: d.Curve, Measured: d.Measured, Updates: d.Updates}
		if seen[key] == 0 {
			traces[i].Links = d.Links
		}
		seen[key]++
		left--
	}
	return traces, nil
}

// read reads run.json of run n.
func (f *Folder) read(n int) (saved, error) { return readRun(f.dir, runFolder(n), n) }

// readRun reads run.json of run n in a folder of a record. An error about its content wraps ErrDamaged.
func readRun(dir, folder string, n int) (saved, error) {
	var s saved
	err := s.load(dir, filepath.Join(folder, runName), n)
	if disk := (*fs.PathError)(nil); errors.As(err, &disk) {
		return saved{}, err
	}
	switch {
	case err == nil:
		return s, nil
	case n == anyNumber || checkVersion(s.Version) != nil:
		return saved{}, fmt.Errorf("%w: %w", err, ErrDamaged)
	}
	return saved{}, fmt.Errorf("%w: %w; delete %s, and --continue makes it again", err, ErrDamaged,
		filepath.Join(dir, folder))
}

// load reads and checks run.json of run n, and brings one of an older version up to date.
func (s *saved) load(dir, name string, n int) error {
	if err := readJSON(dir, name, s); err != nil {
		return err
	}
	if s.Version < Version {
		s.upgrade()
	}
	if err := cmp.Or(s.check(n), s.Data.check(), s.Run.check()); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(dir, name), err)
	}
	if s.Version < Version {
		s.Data.upgrade()
		s.complete(&s.Data)
		if len(s.Data.Curve) > 0 { // it had the accuracies of the node that comes last
			s.FinalAccuracy, s.BestAccuracy = s.Data.Accuracies()
		}
	}
	return nil
}

// anyNumber stands for the number of a run whose folder's name says nothing.
const anyNumber = -1

var errReached = errors.New("keys \"time_to_target_s\" and \"epochs_to_target\" must be numbers where \"reached\" " +
	"is true, null where it is false")

// check finds what no saved run is without; n is the number that it must have, or anyNumber.
func (s *saved) check(n int) error {
	if err := checkVersion(s.Version); err != nil {
		return err
	}
	if n != anyNumber && s.Number != n {
		return fmt.Errorf("key \"run\" is %d, but the folder belongs to run %d", s.Number, n)
	}
	if err := s.checkWords(); err != nil {
		return err
	}
	switch {
	case s.Reached != (s.TimeToTarget != nil) || s.Reached != (s.EpochsToTarget != nil):
		return errReached
	case s.Data.Curve == nil || s.Data.Links == nil || s.Data.Updates == nil:
		return errors.New("key \"data\" must have the lists curve, links and updates")
	}
	for _, chosen := range s.Data.Selections {
		if len(chosen.Neighbours) != len(chosen.Counts) {
			return fmt.Errorf("the selections of node %q are of %d neighbours, but have %d counts", chosen.Node,
				len(chosen.Neighbours), len(chosen.Counts))
		}
	}
	return nil
}

// ReadSummary reads the summary.json of a folder, with its groups recomputed from its runs. One
// without a version is completed from the runs that lie beside it. An error about its content wraps
// ErrDamagedSummary.
func ReadSummary(dir string) (Summary, error) {
	var s Summary
	err := s.load(dir)
	if disk := (*fs.PathError)(nil); errors.As(err, &disk) {
		return Summary{}, err
	}
	path := filepath.Join(dir, summaryName)
	if newer := checkVersion(s.Version); newer != nil {
		return Summary{}, fmt.Errorf("%s: %w: %w", path, newer, ErrDamagedSummary)
	}
	if err != nil {
		return Summary{}, fmt.Errorf("%w: %w; delete %s, and --continue writes it again", err, ErrDamagedSummary, path)
	}
	s.Version = Version
	s.Groups = GroupRuns(s.Runs, s.Target)
	return s, nil
}

// load reads and checks the summary of a folder, and brings one of an older version up to date.
func (s *Summary) load(dir string) error {
	if err := readJSON(dir, summaryName, s); err != nil || checkVersion(s.Version) != nil {
		return err
	}
	for i := range s.Runs {
		if s.Version == Version {
			break
		}
		r := &s.Runs[i]
		r.upgrade()
		if run, err := readRun(dir, runFolder(r.Number), r.Number); err == nil {
			r.Bracket, r.Epochs, r.Models = run.Bracket, run.Epochs, run.Models
			r.FinalAccuracy, r.BestAccuracy = run.FinalAccuracy, run.BestAccuracy
		}
	}
	if err := s.check(); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(dir, summaryName), err)
	}
	return nil
}

// Overview is what a summary says beside its runs.
type Overview struct {
	// Plan is the plan's name.
	Plan  string
	Build Build
	// Wall is in seconds.
	Wall float64
	// Target is the accuracy at which runs end, as a fraction; 0 stands for none.
	Target float64
	// RunsPlanned is how many runs the plan has.
	RunsPlanned int
	// Data are the files of samples that were read.
	Data []DataFile
	// Notes are those of the plan.
	Notes []string
}

// Write assembles summary.json and the CSV file of each list of Data from the saved runs, by rising
// number, and returns the summary. Files of optional lists are written where a run has elements. It
// may be called when only some runs are saved, and again later.
func (f *Folder) Write(o Overview) (Summary, error) {
	runs := f.Runs()
	s := Summary{
		Version: Version, Plan: o.Plan, Build: o.Build, Wall: o.Wall, RunsPlanned: o.RunsPlanned,
		Data: SortFiles(slices.Clone(o.Data)), Notes: o.Notes,
		Complete: len(runs) >= o.RunsPlanned && !slices.ContainsFunc(runs,
			func(r Run) bool { return r.Outcome != Done && r.Outcome != CountedOnly }),
		Runs: runs,
	}
	if o.Target > 0 {
		s.Target = &o.Target
	}
	s.Groups = GroupRuns(runs, s.Target)
	var err error
	if s.Tunings, err = ReadTunings(f.dir); err != nil {
		return Summary{}, err
	}
	if err := f.writeTables(0, nil, runs); err != nil {
		return Summary{}, err
	}
	return s, writeJSON(f.disk, filepath.Join(f.dir, summaryName), s)
}

// writeTables writes the tables from number next on, and at last the rows of all: each
// run is read once.
func (f *Folder) writeTables(next int, open []io.Writer, runs []Run) error {
	if next == len(lists) {
		return f.writeRows(open, runs)
	}
	l := lists[next]
	f.mu.Lock()
	filled := f.filled[next] || !l.optional
	f.mu.Unlock()
	if !filled {
		return f.writeTables(next+1, append(open, nil), runs)
	}
	var others error // names its own file
	err := replace(f.disk, filepath.Join(f.dir, l.file()), func(w io.Writer) error {
		out := bufio.NewWriterSize(w, 64<<10)
		if _, err := out.WriteString(l.header(sweptKeys(runs))); err != nil {
			return err
		}
		if others = f.writeTables(next+1, append(open, out), runs); others != nil {
			return others
		}
		return out.Flush()
	})
	return cmp.Or(others, err)
}

func (f *Folder) writeRows(open []io.Writer, runs []Run) error {
	var b []byte
	keys := sweptKeys(runs)
	for _, r := range runs {
		d, err := f.Data(r.Number)
		if err != nil {
			return err
		}
		for i, out := range open {
			if out == nil {
				continue
			}
			w := newRowWriter(b[:0], &r, keys...)
			lists[i].rows(w, &r, &d)
			b = w.bytes()
			if _, err := out.Write(b); err != nil {
				return writing(filepath.Join(f.dir, lists[i].file()), err)
			}
		}
	}
	return nil
}
