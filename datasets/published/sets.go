package published

// sets are the data sets, with the sizes and checksums that their publishers or several independent
// mirrors agree on.
var sets = []Set{
	{
		Name: "nsl-kdd", About: "network intrusion records in five classes (Tavallaee et al. 2009)",
		Samples: 125_973, Tests: 22_544, Features: 41, Classes: 5,
		Licence: "to be cited (CIC, University of New Brunswick)", Page: "https://www.unb.ca/cic/datasets/nsl.html",
		Files: []File{
			{Name: "KDDTrain+.txt", Size: 19_109_424,
				SHA256: "1b86d2f957b33082081bba410fe129b475efebcc13c9014c3f447c8271aadf95"},
			{Name: "KDDTest+.txt", Size: 3_441_513,
				SHA256: "fa46b0935342616aa83b7c2578db355b6a7aaabbc492248172c7a1e8b7ab8f84"},
		},
		Mirrors: []string{
			"https://raw.githubusercontent.com/defcom17/NSL_KDD/master/",
			"https://raw.githubusercontent.com/jmnwong/NSL-KDD-Dataset/master/",
			"https://raw.githubusercontent.com/HoaNP/NSL-KDD-DataSet/master/",
		},
	},
	{
		Name: "mnist", About: "handwritten digits, 28 × 28 (LeCun et al. 1998)",
		Samples: 60_000, Tests: 10_000, Features: 784, Classes: 10,
		Licence: "CC BY-SA 3.0", Page: "http://yann.lecun.com/exdb/mnist/",
		Files: images(
			[4]string{
				"ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
				"65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
				"0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
				"ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
			},
			[4]int64{9_912_422, 28_881, 1_648_877, 4_542},
			[4]string{
				"440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
				"3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
				"8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
				"f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
			}),
		Mirrors: []string{
			"https://ossci-datasets.s3.amazonaws.com/mnist/",
			"https://storage.googleapis.com/cvdf-datasets/mnist/",
			"https://raw.githubusercontent.com/fgnt/mnist/master/",
			"http://yann.lecun.com/exdb/mnist/",
		},
	},
	{
		Name: "fashion-mnist", About: "clothing, 28 × 28 (Xiao et al. 2017)",
		Samples: 60_000, Tests: 10_000, Features: 784, Classes: 10,
		Licence: "MIT", Page: "https://github.com/zalandoresearch/fashion-mnist",
		Files: images(
			[4]string{
				"c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
				"bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
				"5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
				"0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
			},
			[4]int64{26_421_880, 29_515, 4_422_102, 5_148},
			[4]string{
				"3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
				"a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
				"346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
				"67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
			}),
		Mirrors: []string{
			"http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
			"https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
		},
	},
	{
		Name: "spambase", About: "words and characters of e-mails, spam or not (Hopkins et al. 1999)",
		Samples: 4_601, Features: 57, Classes: 2,
		Licence: "CC BY 4.0", Page: "https://archive.ics.uci.edu/dataset/94/spambase",
		Files: []File{
			{Name: "spambase.data", Size: 702_942,
				SHA256: "b1ef93de71f97714d3d7d4f58fc9f718da7bbc8ac8a150eff2778616a8097b12"},
		},
		Mirrors: []string{"https://archive.ics.uci.edu/ml/machine-learning-databases/spambase/"},
	},
	{
		Name: "a9a", About: "census records, 123 binary inputs, income in two classes (Platt 1998)",
		Samples: 32_561, Tests: 16_281, Features: 123, Classes: 2,
		Licence: "CC BY 4.0 (Adult, UCI)", Page: "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary.html",
		Files: []File{
			{Name: "a9a", Size: 2_329_875, SHA256: "f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906"},
			{Name: "a9a.t", Size: 1_164_628,
				SHA256: "1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9"},
		},
		Mirrors: []string{"https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"},
	},
}

// images returns the four files of MNIST and of the sets in its likeness, from the checksums of
// their contents and the sizes and checksums of the compressed files that were published.
func images(contents [4]string, sizes [4]int64, packed [4]string) []File {
	names := [4]string{"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
		"t10k-labels-idx1-ubyte"}
	lengths := [4]int64{47_040_016, 60_008, 7_840_016, 10_008}
	files := make([]File, len(names))
	for i, name := range names {
		files[i] = File{
			Name: name, Size: lengths[i], SHA256: contents[i],
			Packed: &Download{Name: name + ".gz", Size: sizes[i], SHA256: packed[i]},
		}
	}
	return files
}
