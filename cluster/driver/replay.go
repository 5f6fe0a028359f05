package driver

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/nn/kernel"
)

// Replayed is what came of running a recorded run again.
type Replayed struct {
	Run   int          `json:"run"`
	Point record.Point `json:"point"`
	Seed  uint64       `json:"seed"`
	// Equal says that the digests are, SameBuild that the builds are: only equal builds
	// promise equal digests.
	Equal     bool `json:"equal"`
	SameBuild bool `json:"same_build"`
	// Recorded and RecordedBuild are those of the record, Digest and Build those of now.
	Recorded      string       `json:"recorded_digest"`
	Digest        string       `json:"replayed_digest"`
	RecordedBuild record.Build `json:"recorded_build"`
	Build         record.Build `json:"replayed_build"`
	// OtherData says, a sentence for each file, which samples differ from those of the record.
	OtherData []string `json:"other_data,omitempty"`
}

// Replay runs the run of a folder DIR/runs/NNNN again, by the resolved plan of the record, its
// point and its seed, in virtual time. Nothing is written. Of the options Catalog, Data
// and Strict count. An InputError says what is wrong with the record, or that the run
// has no digest because it was not made in virtual time.
func Replay(ctx context.Context, dir string, o Options) (*Replayed, error) {
	dir = filepath.Clean(dir)
	number, err := strconv.Atoi(filepath.Base(dir))
	if err != nil || filepath.Base(filepath.Dir(dir)) != "runs" {
		return nil, input(fmt.Errorf("%s is no folder of a run, such as results/first/runs/0003", dir))
	}
	reader, err := record.NewReader(filepath.Dir(filepath.Dir(dir)))
	if err != nil {
		return nil, input(err)
	}
	run, _, err := reader.Run(number).Read()
	if err != nil {
		return nil, input(err)
	}
	if run.Clock != string(Virtual) {
		return nil, input(fmt.Errorf("%s: this run's clock was %q; only runs in virtual time have a digest to prove", dir, run.Clock))
	}
	p, err := Parse(filepath.Join(reader.Dir(), "plan.yaml"), []byte(reader.Plan))
	if err != nil {
		return nil, err
	}
	points, err := p.points(o.Catalog)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(points, func(pt point) bool { return slices.Equal(settings(pt.labels), run.Point) })
	if at < 0 {
		return nil, input(fmt.Errorf("%s: the plan has no point %q", dir, run.Point.String()))
	}
	tunings, err := record.ReadTunings(reader.Dir())
	if err != nil {
		return nil, input(err)
	}
	if settled, err := points[at].settle(tunings); err != nil || !settled {
		return nil, input(cmp.Or(err, fmt.Errorf("%s: the record does not say what was chosen for this point", dir)))
	}
	r := &Replayed{
		Run: run.Number, Point: run.Point, Seed: run.Seed, Recorded: run.Digest,
		RecordedBuild: reader.Summary.Build, Build: record.ReadBuild(kernel.Name()),
	}
	shelf := newShelf(o.Data, 1)
	if r.Digest, err = points[at].again(ctx, shelf, run.Seed, o); err != nil {
		return nil, err
	}
	r.OtherData = record.OtherData(reader.Summary.Data, shelf.files())
	r.Equal, r.SameBuild = r.Digest == r.Recorded, r.Build == r.RecordedBuild
	return r, nil
}

// again runs a point with a seed and returns the digest.
func (p *point) again(ctx context.Context, shelf *shelf, seed uint64, o Options) (string, error) {
	task, err := p.task(shelf, seed)
	if err != nil {
		return "", input(err)
	}
	threads := runtime.NumCPU()
	s, err := p.place(task, Virtual, o.Strict, threads)
	if err != nil {
		return "", input(err)
	}
	s.collector = record.NewCollector(record.Config{})
	s.deployment.Observer = s.collector
	if threads < 2 {
		threads = 0
	}
	out, err := s.play(ctx, Virtual, threads)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return "", err
	}
	return digest(out.digest, s.result.Models), nil
}
