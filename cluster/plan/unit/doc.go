// Package unit reads and writes quantities as plans do: durations, shares, rates, speeds and sizes,
// each with its unit. Whatever is accepted is written so that it reads back as the same value, to
// the bit.
package unit
