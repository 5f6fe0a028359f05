package idx

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/gradwire/gradwire/datasets"
	"github.com/gradwire/gradwire/datasets/input"
	"github.com/gradwire/gradwire/datasets/published"
)

// classes are the names of the labels of the sets that Load knows.
var classes = map[string][]string{
	"mnist": {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"},
	"fashion-mnist": {
		"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
		"Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
	},
}

// Load reads the data set "mnist" (LeCun, Bottou, Bengio & Haffner, Proc. IEEE
// 86(11), 1998) or "fashion-mnist" (Xiao, Rasul & Vollgraf, arXiv:1708.07747,
// 2017): the training set into Pool, the published test set into Test. The
// four standard files are looked for in dir/<set> and then in dir itself, each
// without and with .gz. Pixels are divided by 255, row by row; no column is
// Numeric. A file missing or damaged, images and labels of different number,
// and a label above 9 are errors that name the file; a missing file's also
// says how to get it.
func Load(dir, set string) (*datasets.Source, error) {
	if _, ok := classes[set]; !ok {
		return nil, fmt.Errorf("unknown IDX data set %q; there are %q and %q", set, "mnist", "fashion-mnist")
	}
	source := &datasets.Source{}
	pool, err := loadPart(source, dir, set, "train")
	if err != nil {
		return nil, err
	}
	test, err := loadPart(source, dir, set, "t10k")
	if err != nil {
		return nil, err
	}
	source.Pool, source.Test = pool, test
	if err := source.Arrange(datasets.ChannelsFirst); err != nil {
		return nil, err
	}
	pool.Name, test.Name = set, set+" test"
	return source, nil
}

// ClassNames are the names of the classes of a set that Load knows, in the order of their labels;
// nil for another set.
func ClassNames(set string) []string { return slices.Clone(classes[set]) }

// loadPart joins the images and labels whose file names begin with part, and lists the files.
func loadPart(source *datasets.Source, dir, set, part string) (*datasets.Set, error) {
	images, imageFile, err := published.Open(dir, set, part+"-images-idx3-ubyte", readImages)
	if err != nil {
		return nil, err
	}
	labels, labelFile, err := published.Open(dir, set, part+"-labels-idx1-ubyte", Read)
	if err != nil {
		return nil, err
	}
	if len(images.dims) != 3 {
		return nil, fmt.Errorf("%s: dimensions %v; images × rows × columns are expected", imageFile.Path, images.dims)
	}
	source.Files = append(source.Files, imageFile, labelFile)
	return join(images, imageFile.Path, labels, labelFile.Path, classes[set])
}

// Files are the paths of a user's files; the last two may be empty.
type Files struct {
	Images     string `plan:"images,required" doc:"the images, beside the plan unless its path is absolute"`
	Labels     string `plan:"labels,required" doc:"the labels, beside the plan unless its path is absolute"`
	TestImages string `plan:"test-images,omitzero" with:"test-labels" doc:"images to test on; default: 25% of the others is held out"`
	TestLabels string `plan:"test-labels,omitzero" with:"test-images" doc:"labels of the images to test on"`
	Layout     string `plan:"layout" words:"channels-first|channels-last" doc:"where the channels of an image stand among its dimensions; models take them first, and the last are moved there"`
}

// LoadFiles reads images, samples × any other dimensions, and labels, one per sample, into Pool,
// and the test files, if there are any, into Test. It divides the elements of images by 255; no
// column is Numeric. The classes are the labels of the training samples in ascending order.
func LoadFiles(f Files) (*datasets.Source, error) {
	source := &datasets.Source{}
	pool, err := loadPair(source, f.Images, f.Labels, nil)
	if err != nil {
		return nil, err
	}
	source.Pool = pool
	if f.TestImages != "" {
		source.Test, err = loadPair(source, f.TestImages, f.TestLabels, pool.Classes)
	}
	if err == nil {
		err = source.Arrange(f.Layout)
	}
	if err != nil {
		return nil, err
	}
	return source, nil
}

// pixels are images, samples × other dimensions, as inputs.
type pixels struct {
	dims []int
	x    []float32
}

func readImages(r io.Reader, name string) (*pixels, error) {
	var table [256]float32
	for i := range table {
		table[i] = float32(i) / 255
	}
	p := &pixels{}
	begin := func(size int) { p.x = make([]float32, 0, size) }
	dims, err := read(r, name, begin, func(part []byte) {
		for _, b := range part {
			p.x = append(p.x, table[b])
		}
	})
	p.dims = dims
	return p, err
}

// loadPair joins two files, with the given classes or, without them, those that there are, and
// lists the files.
func loadPair(source *datasets.Source, imagesPath, labelsPath string, names []string) (*datasets.Set, error) {
	images, imageFile, err := input.Open(imagesPath, readImages)
	if err != nil {
		return nil, err
	}
	labels, labelFile, err := input.Open(labelsPath, Read)
	if err != nil {
		return nil, err
	}
	source.Files = append(source.Files, imageFile, labelFile)
	if names == nil {
		var seen [256]bool
		for _, label := range labels.Data {
			seen[label] = true
		}
		for label, is := range seen {
			if is {
				names = append(names, strconv.Itoa(label))
			}
		}
	}
	return join(images, imagesPath, labels, labelsPath, names)
}

// join makes a set of images and their labels. A label is the number of a class or, where all
// classes have numbers for names, its name.
func join(images *pixels, imagesPath string, labels *Array, labelsPath string, names []string) (*datasets.Set, error) {
	n := images.dims[0]
	switch {
	case len(images.dims) < 2:
		return nil, fmt.Errorf("%s: dimensions %v; samples × at least one more are expected", imagesPath, images.dims)
	case len(labels.Dims) != 1:
		return nil, fmt.Errorf("%s: dimensions %v; a single dimension, one label an image, is expected", labelsPath,
			labels.Dims)
	case n > MaxSamples:
		return nil, fmt.Errorf("%s: %d images; at most %d are accepted", imagesPath, n, MaxSamples)
	case labels.Dims[0] != n:
		return nil, fmt.Errorf("%s has %d images, %s has %d labels; as many of each are needed", imagesPath, n,
			labelsPath, labels.Dims[0])
	}
	y := make([]int32, n)
	classOf := classesOf(names)
	for i, label := range labels.Data {
		if y[i] = classOf[label]; y[i] < 0 {
			return nil, fmt.Errorf("%s: label %d of sample %d does not occur among those to train on; the classes "+
				"are %q", labelsPath, label, i, names)
		}
	}
	return &datasets.Set{Name: imagesPath, X: images.x, Y: y, Inputs: len(images.x) / n, Classes: names,
		Shape: images.dims[1:]}, nil
}

// classesOf returns the class of each label; -1 for none.
func classesOf(names []string) (of [256]int32) {
	for label := range of {
		of[label] = -1
	}
	numbers := make([]int, len(names))
	for i, name := range names {
		label, err := strconv.ParseUint(name, 10, 8)
		if numbers[i] = int(label); err != nil {
			numbers = nil
			break
		}
	}
	for i := range min(len(names), len(of)) {
		if numbers != nil {
			of[numbers[i]] = int32(i)
		} else {
			of[i] = int32(i)
		}
	}
	return of
}

// ReadOther reads other images, and their labels if they are asked for, for a model of a set in
// this format and this layout.
func ReadOther(o datasets.Other, layout string) (*datasets.Others, error) {
	if err := o.CheckArrays(); err != nil {
		return nil, err
	}
	var set *datasets.Set
	var err error
	if o.Labelled {
		set, err = loadPair(&datasets.Source{}, o.Path, o.Labels, o.Classes)
	} else {
		var images *pixels
		if images, _, err = input.Open(o.Path, readImages); err == nil {
			none := &Array{Dims: images.dims[:1], Data: make([]byte, images.dims[0])}
			set, err = join(images, o.Path, none, "", []string{"0"})
		}
	}
	if err == nil {
		err = set.Arrange(layout)
	}
	if err == nil {
		set.Classes = o.Classes
		err = o.CheckInputs(set)
	}
	if err != nil {
		return nil, err
	}
	return datasets.WholeOthers(set), nil
}
