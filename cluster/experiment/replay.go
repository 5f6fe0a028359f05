package experiment

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/gradwire/gradwire/cluster/record"
	"github.com/gradwire/gradwire/cluster/refusal"
	"github.com/gradwire/gradwire/cluster/saved"
	"github.com/gradwire/gradwire/cluster/shelf"
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
	// Recorded and RecordedBuild come from the record, Digest and Build from the replay.
	Recorded      string       `json:"recorded_digest"`
	Digest        string       `json:"replayed_digest"`
	RecordedBuild record.Build `json:"recorded_build"`
	Build         record.Build `json:"replayed_build"`
	// OtherData has a sentence for each file whose samples differ from the record's.
	OtherData []string `json:"other_data,omitempty"`
}

// recorded is a run of a record, with the point of the plan that it was made of.
type recorded struct {
	reader *record.Reader
	run    record.Run
	point  Point
}

// openRecorded reads the run of a folder DIR/runs/NNNN, and the resolved plan of its record.
func openRecorded(dir string, o Options) (*recorded, error) {
	dir = filepath.Clean(dir)
	reader, number, err := saved.Folder(dir)
	if err != nil {
		return nil, refusal.Input(err)
	}
	run, _, err := reader.Run(number).Read()
	if err != nil {
		return nil, refusal.Input(err)
	}
	p, err := Parse(filepath.Join(reader.Dir(), record.PlanName), []byte(reader.Plan))
	if err != nil {
		return nil, err
	}
	points, err := p.Points(o.Catalog)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(points, func(pt Point) bool { return slices.Equal(settings(pt.Labels), run.Point) })
	if at < 0 {
		return nil, refusal.Input(fmt.Errorf("%s: the plan has no point %q", dir, run.Point.String()))
	}
	tunings, err := record.ReadTunings(reader.Dir())
	if err != nil {
		return nil, refusal.Input(err)
	}
	if settled, err := points[at].settle(tunings); err != nil || !settled {
		return nil, refusal.Input(cmp.Or(err, fmt.Errorf("%s: the record does not say what was chosen for this point",
			dir)))
	}
	return &recorded{reader, run, points[at]}, nil
}

// Replay runs the run of a folder DIR/runs/NNNN again, by the resolved plan of the record, its
// point and its seed, in virtual time. Nothing is written. Of the options Catalog, Data
// and Strict count. An InputError says what is wrong with the record, or that the run
// has no digest because it was not made in virtual time.
func Replay(ctx context.Context, dir string, o Options) (*Replayed, error) {
	from, err := openRecorded(dir, o)
	if err != nil {
		return nil, err
	}
	run := &from.run
	if run.Counted {
		return nil, refusal.Input(fmt.Errorf("%s: this run was counted, not trained: it has no digest to prove",
			filepath.Clean(dir)))
	}
	if run.Clock != string(VirtualTime) {
		return nil, refusal.Input(fmt.Errorf("%s: this run's clock was %q; only runs in virtual time have a digest "+
			"to prove", filepath.Clean(dir), run.Clock))
	}
	r := &Replayed{
		Run: run.Number, Point: run.Point, Seed: run.Seed, Recorded: run.Digest,
		RecordedBuild: from.reader.Summary.Build, Build: record.ReadBuild(kernel.Name()),
	}
	shelf := shelf.New(o.Data, 1, nil)
	if r.Digest, err = from.point.again(ctx, shelf, run.Seed, o); err != nil {
		return nil, err
	}
	r.OtherData = record.OtherData(from.reader.Summary.Data, shelf.Files())
	r.Equal, r.SameBuild = r.Digest == r.Recorded, r.Build == r.RecordedBuild
	return r, nil
}

// again runs a point with a seed and returns the digest.
func (p *Point) again(ctx context.Context, shelf *shelf.Shelf, seed uint64, o Options) (string, error) {
	s, err := p.stageFor(shelf, seed, o.Strict, runtime.NumCPU())
	if err != nil {
		return "", refusal.Input(err)
	}
	s.Collector = record.NewCollector(record.Config{})
	s.Deployment.Observer = s.Collector
	out, err := Virtual{}.Play(ctx, s)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return "", err
	}
	return digest(*out.Digest, s.result.Models), nil
}
