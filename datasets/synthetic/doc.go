// Package synthetic generates substitutes for published data sets. They have the originals'
// shape and real structure, so everything runs without a download.
//
// Traffic resembles NSL-KDD: connection records of five classes of unequal size. Each class is
// a mixture of overlapping profiles, and only the joint value of two columns separates some of
// them. Digits resembles MNIST: digits drawn from strokes and distorted. Both are functions of
// their arguments alone, bit for bit: one random stream, no transcendental functions, no fused
// multiply-add. They are hard enough that training architectures differ on them; they cannot
// replace the originals in a published result.
package synthetic
