package record

import (
	"maps"
	"strconv"
)

// Describe says what the file of run n's model has in its metadata beside the seed and the point. It is called before
// SaveRun.
func (f *Folder) Describe(n int, about map[string]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.about[n] = maps.Clone(about)
}

// metadata returns what the file of a run's model says.
func (f *Folder) metadata(r *Run) map[string]string {
	f.mu.Lock()
	about := f.about[r.Number]
	delete(f.about, r.Number)
	f.mu.Unlock()
	if about == nil {
		about = map[string]string{}
	}
	about["seed"], about["point"] = strconv.FormatUint(r.Seed, 10), r.Point.String()
	return about
}
