// Package unit reads and writes quantities as plans do: durations, shares, rates, speeds and sizes,
// each with its unit. It writes every value that it accepts so that it reads back to the bit.
package unit
