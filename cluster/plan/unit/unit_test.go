package unit_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gradwire/gradwire/cluster/plan/settings"
	"github.com/gradwire/gradwire/cluster/plan/syntax"
	"github.com/gradwire/gradwire/cluster/plan/unit"
)

func TestDurationsAreReadWithTheirUnits(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"5ms": 5 * time.Millisecond, "1.5s": 1500 * time.Millisecond, "10m": 10 * time.Minute, "2h": 2 * time.Hour,
		"0s": 0, "0ms": 0,
		"100us": 100 * time.Microsecond, "100µs": 100 * time.Microsecond, "1m30s": 90 * time.Second,
		"5 ms": 5 * time.Millisecond, "0.5h": 30 * time.Minute,
		"1ns": 1, "0m0s": 0, "106751d": -1, "": -1, "0": -1, "5": -1, "1.5": -1, "-5ms": -1, "+5ms": -1, "5MS": -1,
		"ms": -1, ".5s": -1, "0.1ns": -1,
		"1e3s": -1, "5  ms": -1, " 5ms": -1, "5ms ": -1, "99999999h": -1, "inf": -1, "5mss": -1, "1s..5s": -1,
		"0x5s": -1,
	} {
		got, err := unit.ParseDuration(in)
		if want < 0 && err == nil || want >= 0 && (err != nil || time.Duration(got) != want) {
			t.Errorf("%q = %v, %v; want %v", in, got, err, want)
		}
		if err != nil && !strings.Contains(err.Error(), strconv.Quote(in)) {
			t.Errorf("the message does not quote %q: %v", in, err)
		}
	}
}

func TestDurationsAreWrittenShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", time.Hour: "1h", 90 * time.Second: "1m30s", 10 * time.Minute: "10m", time.Hour + time.Second: "1h0m1s",
		10 * time.Hour: "10h", 30 * time.Second: "30s", 100 * time.Microsecond: "100us",
		time.Hour + time.Minute: "1h1m", 1: "1ns",
	} {
		if got := unit.Duration(d).String(); got != want {
			t.Errorf("%d ns is written %s, want %s", d, got, want)
		}
	}
}

// TestRatesSpeedsAndSizes compares with products that the test works out by itself.
func TestRatesSpeedsAndSizesAreReadWithTheirUnits(t *testing.T) {
	for in, want := range map[string]float64{
		"10 Mbit/s": 10e6 / 8, "1 Gbit/s": 125e6, "1.5 MB/s": 1.5e6, "100 KiB/s": 102400, "100KB/s": 1e5,
		"1 kB/s": 1000, "8 bit/s": 1,
		"2 GiB/s": 2 << 30, "unlimited": 0, "0.1 Mbit/s": 12500, "3 TB/s": 3e12,
		"10": -1, "0 MB/s": -1, "-1 MB/s": -1, "1 MB": -1, "1 mb/s": -1, "1e3 MB/s": -1, "1.2.3 MB/s": -1, ". MB/s": -1,
		"": -1, " ": -1,
		"99999999999999999999 TB/s": -1, "1 MB/s/s": -1, "Unlimited": -1, "NaN MB/s": -1, "1/2 MB/s": -1,
		"0.0000001 B/s": -1,
	} {
		got, err := unit.ParseByteRate(in)
		if want < 0 && err == nil || want >= 0 && (err != nil || float64(got) != want) {
			t.Errorf("%q = %v, %v; want %v", in, float64(got), err, want)
		}
	}
	for in, want := range map[string]float64{"10 GFLOP/s": 10e9, "2.5 TFLOP/s": 2.5e12, "1 FLOP/s": 1, "10 GFLOPS": -1,
		"10 FLOP": -1, "0 FLOP/s": -1} {
		got, err := unit.ParseSpeed(in)
		if want < 0 && err == nil || want >= 0 && (err != nil || float64(got) != want) {
			t.Errorf("%q = %v, %v; want %v", in, float64(got), err, want)
		}
	}
	for in, want := range map[string]int64{"1 MB": 1e6, "64 KiB": 65536, "1500 B": 1500, "0 B": 0, "1.5 KiB": 1536,
		"1.5 B": -1, "1": -1, "9 EB": -1, "9999999 TiB": -1} {
		got, err := unit.ParseSize(in)
		if want < 0 && err == nil || want >= 0 && (err != nil || int64(got) != want) {
			t.Errorf("%q = %v, %v; want %v", in, int64(got), err, want)
		}
	}
}

func TestSharesAreReadExactly(t *testing.T) {
	for in, want := range map[string]float64{
		"94%": 0.94, "0.94": 0.94, "33.3%": 0.333, "0%": 0, "100%": 1, "1": 1, "0": 0, "12.5 %": 0.125, "1e-3": 0.001,
		"-0": 0, "0.1%": 0.001,
		"101%": -1, "-1%": -1, "1e999": -1, "94": -1, "1.01": -1, "%": -1, "": -1, "1e1%": -1, "nan": -1, "inf%": -1,
		"0x1p-2": -1, "1_0%": -1, "5 percent": -1,
	} {
		got, err := unit.ParseFraction(in)
		if want < 0 && err == nil || want >= 0 && (err != nil || float64(got) != want || math.Signbit(float64(got))) {
			t.Errorf("%q = %v, %v; want %v", in, float64(got), err, want)
		}
	}
	for f, want := range map[unit.Fraction]string{0.94: "94%", 1: "100%", 0: "0%", 0.333: "33.3%", 0.001: "0.1%",
		0.07: "7%", 1e-9: "1e-09", 0.5: "50%"} {
		if f.String() != want {
			t.Errorf("%v is written %s, want %s", float64(f), f, want)
		}
	}
}

func TestIntervalsAndRangesAreRead(t *testing.T) {
	for in, want := range map[string]unit.Interval{
		"0.05 epochs": {Epochs: 0.05}, "1 epoch": {Epochs: 1}, "10 steps": {Steps: 10}, "1 step": {Steps: 1},
		"20 rounds": {Rounds: 20}, "1 round": {Rounds: 1}, "2s": {Time: 2e9}, "1m30s": {Time: 90e9},
	} {
		if got, err := unit.ParseInterval(in); err != nil || got != want || got.String() != in {
			t.Errorf("%q = %v, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "5", "0 steps", "1.5 steps", "0s", "-1 epochs", "-1s", "epochs", "1e99 epochs",
		"99999999999999999999 steps", "0 rounds", "5 turns", "1 epoch 2"} {
		if got, err := unit.ParseInterval(in); err == nil {
			t.Errorf("%q = %v", in, got)
		}
	}
	for in, want := range map[string]unit.DurationRange{"1s..5s": {1e9, 5e9}, "2s": {2e9, 2e9}, "1s .. 5s": {1e9, 5e9},
		"0s..1ms": {0, 1e6}} {
		if got, err := unit.ParseDurationRange(in); err != nil || got != want {
			t.Errorf("%q = %v, %v", in, got, err)
		}
	}
	for _, in := range []string{"5s..1s", "1s..", "..1s", "1..5s", "1s...5s", "1s..5", ""} {
		if got, err := unit.ParseDurationRange(in); err == nil {
			t.Errorf("%q = %v", in, got)
		}
	}
}

// unitType is what all unit types do.
type unitType interface {
	comparable
	fmt.Stringer
	settings.Marshaler
}

// roundTrips checks that v, if it can be written, is read back as it was, also through a whole
// plan.
func roundTrips[T unitType](t rapid.TB, v T, parse func(string) (T, error)) {
	t.Helper()
	n, err := v.MarshalPlan()
	if err != nil {
		t.Fatalf("%v cannot be written: %v", v, err)
	}
	if back, err := parse(v.String()); err != nil || back != v {
		t.Fatalf("%v was read back as %v, %v", v, back, err)
	}
	root, err := syntax.Parse("p", []byte(syntax.NewMap(syntax.Field{Key: "v", Value: n}).YAML()))
	if err != nil {
		t.Fatal(err)
	}
	var into struct {
		V T `plan:"v"`
	}
	if err := settings.Decode(root, &into); err != nil || into.V != v {
		t.Fatalf("%v was decoded as %v, %v", v, into.V, err)
	}
}

func TestUnitsRoundTripExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		duration := rapid.Map(rapid.Int64Range(0, math.MaxInt64),
			func(i int64) unit.Duration { return unit.Duration(i) })
		round := rapid.Map(rapid.Int64Range(0, 100_000),
			func(i int64) unit.Duration { return unit.Duration(i) * unit.Duration(time.Second) })
		roundTrips(t, duration.Draw(t, "duration"), unit.ParseDuration)
		roundTrips(t, round.Draw(t, "seconds"), unit.ParseDuration)
		a, b := duration.Draw(t, "a"), duration.Draw(t, "b")
		roundTrips(t, unit.DurationRange{min(a, b), max(a, b)}, unit.ParseDurationRange)
		roundTrips(t, unit.Fraction(rapid.Float64Range(0, 1).Draw(t, "fraction")), unit.ParseFraction)
		roundTrips(t, unit.ByteRate(rapid.Float64Range(1e-3, 1e18).Draw(t, "rate")), unit.ParseByteRate)
		roundTrips(t, unit.ByteRate(125*rapid.Int64Range(0, 1<<40).Draw(t, "whole rate")), unit.ParseByteRate)
		roundTrips(t, unit.Speed(rapid.Float64Range(1, 1e24).Draw(t, "speed")), unit.ParseSpeed)
		roundTrips(t, unit.Size(rapid.Int64Range(0, 1<<60).Draw(t, "size")), unit.ParseSize)
		roundTrips(t, unit.Interval{Epochs: rapid.Float64Range(1e-9, 1e9).Draw(t, "epochs")}, unit.ParseInterval)
		roundTrips(t, unit.Interval{Steps: rapid.IntRange(1, min(1<<48, math.MaxInt)).Draw(t, "steps")},
			unit.ParseInterval)
		roundTrips(t, unit.Interval{Time: max(1, duration.Draw(t, "time"))}, unit.ParseInterval)
	})
}

func TestWhatNoPlanMaySayCannotBeWritten(t *testing.T) {
	for _, m := range []settings.Marshaler{
		unit.Duration(-1), unit.DurationRange{2, 1}, unit.DurationRange{-1, 1}, unit.Fraction(1.1),
		unit.Fraction(math.NaN()), unit.Fraction(-0.1), unit.ByteRate(-1),
		unit.ByteRate(math.Inf(1)), unit.ByteRate(math.NaN()), unit.Speed(0), unit.Speed(math.Inf(-1)), unit.Size(-1),
		unit.Interval{}, unit.Interval{Steps: -1}, unit.Interval{Epochs: math.NaN()},
	} {
		if n, err := m.MarshalPlan(); err == nil {
			t.Errorf("%#v is written %s", m, n)
		}
	}
}

// fuzzUnit checks that what parse accepts is written so that it reads back the same.
func fuzzUnit[T unitType](f *testing.F, parse func(string) (T, error), seeds ...string) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := parse(s)
		if err != nil {
			if len(err.Error()) > 1000 {
				t.Errorf("the message has %d bytes", len(err.Error()))
			}
			return
		}
		roundTrips(t, v, parse)
	})
}

func FuzzDuration(f *testing.F) {
	fuzzUnit(f, unit.ParseDuration, "5ms", "1.5s", "1m30s", "0s", "100µs", "-1s", "5", "9223372036s", "0.0000000001h",
		"2562047h47m16.854775807s")
}
func FuzzDurationRange(f *testing.F) {
	fuzzUnit(f, unit.ParseDurationRange, "1s..5s", "2s", "5s..1s", "..")
}
func FuzzFraction(f *testing.F) {
	fuzzUnit(f, unit.ParseFraction, "94%", "0.94", "1e-300", "100%", "1e999", "-0", "0.000000000000000000000000001%")
}
func FuzzByteRate(f *testing.F) {
	fuzzUnit(f, unit.ParseByteRate, "10 Mbit/s", "1.5 MB/s", "100 KiB/s", "unlimited", "0.001 B/s",
		"0.3333333333333333333333333333 Gbit/s")
}
func FuzzSpeed(f *testing.F) { fuzzUnit(f, unit.ParseSpeed, "10 GFLOP/s", "1 FLOP/s", "1.1 TFLOP/s") }
func FuzzSize(f *testing.F)  { fuzzUnit(f, unit.ParseSize, "1 MB", "1.5 KiB", "0 B", "1048576 TiB") }
func FuzzInterval(f *testing.F) {
	fuzzUnit(f, unit.ParseInterval, "0.05 epochs", "1 epoch", "10 steps", "2s", "1e-9 epochs")
}
