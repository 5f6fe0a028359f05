package nn

// SmallCNN returns a small convolutional network for 28×28 grey images in ten classes, with 21,840
// parameters: 10 channels of 5×5, max-pool 2, ReLU, 20 channels of 5×5, max-pool 2, ReLU, 50 units
// with ReLU, 10 classes. It is the one of PyTorch's first MNIST example without its dropout.
func SmallCNN() *Network {
	return named(Conv2D{Channels: 10, Kernel: 5}, MaxPool{Size: 2}, ReLU, Conv2D{Channels: 20, Kernel: 5},
		MaxPool{Size: 2}, ReLU,
		Flatten{}, Dense{50}, ReLU, Dense{10})
}

// BigCNN returns a convolutional network for 28×28 grey images in ten classes, with 1,199,882
// parameters: 32 channels of 3×3 with ReLU, 64 channels of 3×3 with ReLU, max-pool 2, 128 units
// with ReLU, 10 classes. It is the one of PyTorch's present MNIST example without its dropout.
func BigCNN() *Network {
	return named(Conv2D{Channels: 32, Kernel: 3}, ReLU, Conv2D{Channels: 64, Kernel: 3}, ReLU, MaxPool{Size: 2},
		Flatten{}, Dense{128}, ReLU, Dense{10})
}

// LeNet5 returns the network of LeCun, Bottou, Bengio and Haffner, "Gradient-based learning applied
// to document recognition", Proc. IEEE 86(11), 1998, section II-B, as it is commonly reimplemented,
// with 61,706 parameters: 28×28 grey images padded to 32×32, 6 channels of 5×5, average-pool 2, 16
// channels of 5×5 that see all 6, average-pool 2, 120, 84 and 10 units. Activations are tanh. The
// original's pooling has weights, its second convolution sees chosen channels, its tanh is scaled
// and its last layer has radial basis functions.
func LeNet5() *Network {
	return named(Conv2D{Channels: 6, Kernel: 5, Padding: 2}, Tanh, AveragePool{Size: 2},
		Conv2D{Channels: 16, Kernel: 5}, Tanh, AveragePool{Size: 2},
		Flatten{}, Dense{120}, Tanh, Dense{84}, Tanh, Dense{10})
}

// named is a network whose layers are known to fit 28×28 images.
func named(layers ...Layer) *Network {
	n, err := NewNetwork(Shape{1, 28, 28}, layers)
	if err != nil {
		panic("nn: " + err.Error())
	}
	return n
}
