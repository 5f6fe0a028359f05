package idx

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gradwire/gradwire/datasets"
)

// classes is the number of labels of MNIST and of the sets like it.
const classes = 10

// known is a data set that Load knows by name.
type known struct {
	name      string
	classes   []string
	addresses []string
}

var knownSets = []known{
	{
		name:    "mnist",
		classes: []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"},
		addresses: []string{
			"https://ossci-datasets.s3.amazonaws.com/mnist/",
			"https://storage.googleapis.com/cvdf-datasets/mnist/",
		},
	},
	{
		name: "fashion-mnist",
		classes: []string{
			"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
			"Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
		},
		addresses: []string{
			"http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
			"https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
		},
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
	for _, k := range knownSets {
		if k.name != set {
			continue
		}
		pool, err := k.load(dir, "train", k.name)
		if err != nil {
			return nil, err
		}
		test, err := k.load(dir, "t10k", k.name+" test")
		if err != nil {
			return nil, err
		}
		if pool.Inputs != test.Inputs {
			return nil, fmt.Errorf("data set %s: training images have %d pixels, test images %d", set, pool.Inputs, test.Inputs)
		}
		return &datasets.Source{Pool: pool, Test: test}, nil
	}
	return nil, fmt.Errorf("unknown IDX data set %q; there are %q and %q", set, knownSets[0].name, knownSets[1].name)
}

// load joins the images and labels whose file names begin with part.
func (k known) load(dir, part, name string) (*datasets.Set, error) {
	imagesPath, images, err := k.read(dir, part+"-images-idx3-ubyte")
	if err != nil {
		return nil, err
	}
	labelsPath, labels, err := k.read(dir, part+"-labels-idx1-ubyte")
	if err != nil {
		return nil, err
	}
	if len(images.Dims) != 3 {
		return nil, fmt.Errorf("%s: dimensions %v; images × rows × columns are expected", imagesPath, images.Dims)
	}
	if len(labels.Dims) != 1 {
		return nil, fmt.Errorf("%s: dimensions %v; a single dimension, one label an image, is expected", labelsPath, labels.Dims)
	}
	n := images.Dims[0]
	if labels.Dims[0] != n {
		return nil, fmt.Errorf("%s has %d images, %s has %d labels; as many of each are needed", imagesPath, n, labelsPath, labels.Dims[0])
	}
	y := make([]int32, n)
	for i, label := range labels.Data {
		if label >= classes {
			return nil, fmt.Errorf("%s: label %d of sample %d; labels are 0 to %d", labelsPath, label, i, classes-1)
		}
		y[i] = int32(label)
	}
	return &datasets.Set{
		Name:    name,
		X:       pixels(images.Data),
		Y:       y,
		Inputs:  images.Dims[1] * images.Dims[2],
		Classes: k.classes,
	}, nil
}

func pixels(data []byte) []float32 {
	var table [256]float32
	for i := range table {
		table[i] = float32(i) / 255
	}
	x := make([]float32, len(data))
	for i, b := range data {
		x[i] = table[b]
	}
	return x
}

// read reads the first file of that name that exists.
func (k known) read(dir, name string) (path string, a *Array, err error) {
	for _, folder := range []string{filepath.Join(dir, k.name), dir} {
		for _, suffix := range []string{"", ".gz"} {
			path = filepath.Join(folder, name+suffix)
			a, err = readFile(path)
			if !errors.Is(err, fs.ErrNotExist) {
				return path, a, err
			}
		}
	}
	return "", nil, fmt.Errorf("data set %s: %s (or %s.gz) is neither in %s nor in %s; download it from %s or %s (append the file name): %w",
		k.name, name, name, filepath.Join(dir, k.name), filepath.Clean(dir), k.addresses[0], k.addresses[1], fs.ErrNotExist)
}

func readFile(path string) (*Array, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // read only: nothing is lost
	return Read(f, path)
}
