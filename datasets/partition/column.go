package partition

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gradwire/gradwire/datasets"
)

// Column gives each worker the samples that have a value of its own in a column of the table, the
// set's Groups.
type Column struct {
	// Name is the column's, for errors.
	Name string
	// Values are those of each worker. Nil gives each worker the value that is its name.
	Values []ColumnValues
}

// ColumnValues are the values of which one worker sees the samples.
type ColumnValues struct {
	Worker string
	Values []string
}

// Assign implements Split. Errors are also: a set without groups, a value of the column that no
// worker has, a value that two have or that no sample has, a worker that does not exist, is listed
// twice or has no value.
func (c Column) Assign(set *datasets.Set, workers []string, _ uint64) ([][]int32, error) {
	if err := checkWorkers(workers); err != nil {
		return nil, err
	}
	if set.Groups == nil {
		return nil, fmt.Errorf("split column: data set %q has no column to split by", set.Name)
	}
	if err := c.Check(workers); err != nil {
		return nil, err
	}
	owner := c.owners(workers)
	sees := make([]int, len(set.GroupNames))
	var strange []string
	for g, value := range set.GroupNames {
		w, known := owner[value]
		if !known {
			strange = append(strange, value)
		}
		sees[g] = w
		delete(owner, value)
	}
	if len(strange) > 0 {
		return nil, fmt.Errorf("split column: no worker is given the samples whose %s is %s; without workers, the "+
			"values must be the workers' names, which are %s; workers: {NAME: [VALUE]} says whose a value is",
			c.Name, some(strange), some(workers))
	}
	if left := slices.Sorted(maps.Keys(owner)); len(left) > 0 {
		return nil, fmt.Errorf("split column: no training sample's %s is %s, which worker %s is to see; there are %s",
			c.Name, left[0], workers[owner[left[0]]], some(set.GroupNames))
	}
	assigned := make([][]int32, len(workers))
	for row, g := range set.Groups {
		assigned[sees[g]] = append(assigned[sees[g]], int32(row))
	}
	return finish("column", assigned, workers)
}

// Check finds what Assign would refuse in the workers' names, before there are any samples.
func (c Column) Check(workers []string) error {
	if c.Values == nil {
		return nil
	}
	has := map[string]string{}
	var listed []string
	for _, of := range c.Values {
		switch {
		case !slices.Contains(workers, of.Worker):
			return fmt.Errorf("split column: unknown worker %q; there are %q", of.Worker, workers)
		case slices.Contains(listed, of.Worker):
			return fmt.Errorf("split column: worker %q is listed twice", of.Worker)
		case len(of.Values) == 0:
			return fmt.Errorf("split column: worker %q is given no value", of.Worker)
		}
		listed = append(listed, of.Worker)
		for _, v := range of.Values {
			if other, twice := has[v]; twice {
				return fmt.Errorf("split column: the value %q is given to %s and to %s; one worker sees a sample", v,
					other, of.Worker)
			}
			has[v] = of.Worker
		}
	}
	for _, w := range workers {
		if !slices.Contains(listed, w) {
			return fmt.Errorf("split column: worker %q is given no value; workers names a list for each", w)
		}
	}
	return nil
}

// owners are the numbers of the workers who see the samples of each value.
func (c Column) owners(workers []string) map[string]int {
	owner := map[string]int{}
	for w, name := range workers {
		if c.Values == nil {
			owner[name] = w
		}
	}
	for _, of := range c.Values {
		for _, v := range of.Values {
			owner[v] = slices.Index(workers, of.Worker)
		}
	}
	return owner
}

// some lists the first names.
func some(names []string) string {
	const most = 10
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// File gives each worker the samples of the file that bears its name, the set's Groups.
type File struct{}

// Assign implements Split. Errors are also those of Check, and a set that is not of several files.
func (f File) Assign(set *datasets.Set, workers []string, _ uint64) ([][]int32, error) {
	if err := checkWorkers(workers); err != nil {
		return nil, err
	}
	if err := f.Check(set.GroupNames, workers); err != nil {
		return nil, err
	}
	assigned := make([][]int32, len(workers))
	for row, g := range set.Groups {
		w := slices.Index(workers, set.GroupNames[g])
		assigned[w] = append(assigned[w], int32(row))
	}
	return finish("file", assigned, workers)
}

// Check finds what Assign would refuse in the names of files and workers, before there are any
// samples.
func (File) Check(files, workers []string) error {
	if len(files) == 0 {
		return errors.New("split file: the data set is not of several files; file: {WORKER: FILE} of csv names one " +
			"for each worker")
	}
	for _, name := range files {
		if !slices.Contains(workers, name) {
			return fmt.Errorf("split file: there is a file for %q, who is no worker; there are %s", name, some(workers))
		}
	}
	for _, w := range workers {
		if !slices.Contains(files, w) {
			return fmt.Errorf("split file: worker %q has no file; there are files for %s", w, some(files))
		}
	}
	return nil
}
