// Package synthetic generates stand-ins for published data sets, of the same
// shape and with real structure, so that everything runs without a download.
//
// Traffic resembles NSL-KDD: connection records of five unequal classes, each
// a mixture of overlapping profiles, some of which only the joint value of two
// columns tells apart. Digits resembles MNIST: digits drawn from strokes and
// distorted. Both are functions of their arguments alone, bit for bit: one
// random stream, no transcendental functions, no fused multiplication and
// addition. They are made to be hard enough that training architectures
// differ on them, not to replace the originals in a finding.
package synthetic
