package rate_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gradwire/gradwire/cluster/link/rate"
)

// draws is a stream of its own for each place.
type draws uint64

func (d draws) At(place uint64) *rand.Rand { return rand.New(rand.NewPCG(uint64(d), place)) }

func walk() rate.RandomWalk {
	return rate.RandomWalk{FirstMin: 2e5, FirstMax: 3e5, Step: 1e5, Every: 100 * time.Millisecond, Max: 5e5}
}

func trace(t *testing.T, repeat, anywhere bool) *rate.Trace {
	t.Helper()
	points, _, err := rate.ReadTrace(strings.NewReader(
		"time_ms,rate_kbps # of a phone\n\n250,800\n1000,0\n1500,4000\n1600,16\n4000,80\n"), "t.csv")
	if err != nil {
		t.Fatal(err)
	}
	return rate.NewTrace(rate.Trace{Points: points, Repeat: repeat, Anywhere: anywhere})
}

func kinds(t *testing.T) map[string]rate.Rate {
	t.Helper()
	all := map[string]rate.Rate{
		"constant": rate.Constant(12345.678), "walk": walk(),
		"trace": trace(t, false, false), "repeated": trace(t, true, false), "anywhere": trace(t, true, true),
		"mahimahi":          &rate.Opportunities{At: []uint32{0, 3, 3, 3, 10, 400}},
		"mahimahi anywhere": &rate.Opportunities{At: []uint32{0, 3, 3, 3, 10, 400}, Anywhere: true},
	}
	for _, m := range rate.Mobile() {
		all[m.Name] = m.Quantiles
	}
	return all
}

func TestWhatHasPassedByAnInstantAndWhenItHasAreInverse(t *testing.T) {
	for name, r := range kinds(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := r.Validate(); err != nil {
				t.Fatal(err)
			}
			instants, amounts := r.Start(draws(7)), r.Start(draws(7))
			random := rand.New(rand.NewPCG(1, 2))
			at, before := time.Duration(0), 0.0
			for range 2000 {
				at += time.Duration(random.ExpFloat64() * 2e8)
				carried := instants.Carried(at)
				if carried < before {
					t.Fatalf("%.3f bytes by %v, %.3f before", carried, at, before)
				}
				before = carried
				if carried == 0 {
					continue
				}
				first := amounts.Passed(carried)
				if first > at+1 {
					t.Fatalf("%.3f bytes by %v, but they pass at %v", carried, at, first)
				}
				// What has passed before the first instant at which as many have is less.
				if again := r.Start(draws(7)).Carried(first - 1); again > carried*(1+1e-12) {
					t.Fatalf("%.3f bytes pass at %v, but %.3f before", carried, first, again)
				}
			}
		})
	}
}

func TestRatesAddUpToWhatIsCarried(t *testing.T) {
	for name, r := range kinds(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rates, carried := r.Start(draws(7)), r.Start(draws(7))
			tolerance := 1e-9
			if strings.HasPrefix(name, "mahimahi") {
				tolerance = 4 * rate.Packet // at most 4 leave at an instant
			}
			sum := 0.0
			for at := time.Duration(0); at < 10*time.Minute; {
				now, until := rates.Rate(at)
				if until <= at {
					t.Fatalf("at %v a rate until %v", at, until)
				}
				until = min(until, at+17*time.Second)
				sum += now * (until - at).Seconds()
				at = until
				if want := carried.Carried(at); math.Abs(sum-want) > max(tolerance, 1e-9*want) {
					t.Fatalf("rates add up to %.6f bytes by %v, carried are %.6f", sum, at, want)
				}
			}
		})
	}
}

// An integral of the file's rates, a microsecond at a time.
func TestTraceCarriesTheIntegralOfItsFile(t *testing.T) {
	kbps := func(ms float64) float64 {
		if ms >= 4000 {
			ms = 250 + math.Mod(ms-250, 3750)
		}
		switch {
		case ms < 1000:
			return 800
		case ms < 1500:
			return 0
		case ms < 1600:
			return 4000
		}
		return 16
	}
	p := trace(t, true, false).Start(draws(1))
	sum := 0.0
	for ms := range 20000 {
		if got := p.Carried(time.Duration(ms) * time.Millisecond); math.Abs(got-sum) > 1e-6 {
			t.Fatalf("%.9f bytes by %d ms, want %.9f", got, ms, sum)
		}
		sum += kbps(float64(ms)) / 8
	}
}

func TestTraceThatDoesNotRepeatGoesOnAtItsLastRate(t *testing.T) {
	p := trace(t, false, false).Start(draws(1))
	if got := p.Carried(14*time.Second) - p.Carried(4*time.Second); math.Abs(got-100e3) > 1e-6 {
		t.Errorf("%.6f bytes in ten seconds at 80 kbit/s, want 100,000", got)
	}
}

// mahimahi is a second implementation: a loop over milliseconds, as a link of Mahimahi runs.
func mahimahi(stamps []uint32, arrivals []uint32, sizes []int) (done []uint32) {
	done = make([]uint32, len(sizes))
	left := slices.Clone(sizes)
	head, number, base := 0, 0, uint32(0)
	for head < len(sizes) {
		now := base + stamps[number]
		if number++; number == len(stamps) {
			number, base = 0, base+stamps[len(stamps)-1]
		}
		for room := 1500; head < len(sizes) && arrivals[head] <= now && room > 0; {
			take := min(room, left[head])
			room, left[head] = room-take, left[head]-take
			if left[head] == 0 {
				done[head] = now
				head++
			}
		}
	}
	return done
}

func TestOpportunitiesAreUsedAsMahimahiUsesThem(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 3))
		var stamps []uint32
		for last := uint32(0); len(stamps) < 3+random.IntN(30) || last == 0; {
			last += uint32(random.IntN(4) * random.IntN(20))
			stamps = append(stamps, last)
		}
		var arrivals []uint32
		var sizes []int
		for now := uint32(0); len(sizes) < 50; now += uint32(random.IntN(40)) {
			arrivals, sizes = append(arrivals, now), append(sizes, 1+random.IntN(4000))
		}
		want := mahimahi(stamps, arrivals, sizes)
		p := (&rate.Opportunities{At: stamps}).Start(nil)
		free, position := time.Duration(-1), 0.0
		for i, size := range sizes {
			if at := time.Duration(arrivals[i]) * time.Millisecond; at > free {
				position = p.Carried(at)
			}
			position += float64(size)
			if free = p.Passed(position); free != time.Duration(want[i])*time.Millisecond {
				t.Fatalf("seed %d: message %d passes at %v, want %d ms (instants %v)", seed, i, free, want[i], stamps)
			}
		}
	}
}

func TestWalkStaysWithinItsBoundsAndTendsToTheirMiddle(t *testing.T) {
	w := walk()
	p := w.Start(draws(5))
	const windows = 200000
	last, least, most, before := 0.0, math.Inf(1), 0.0, -1.0
	for k := range windows {
		next := p.Carried(time.Duration(k+1) * w.Every)
		now := (next - last) / w.Every.Seconds()
		least, most, last = min(least, now), max(most, now), next
		if before >= 0 && math.Abs(now-before) > w.Step*(1+1e-6) {
			t.Fatalf("from %.0f to %.0f at once", before, now)
		}
		before = now
	}
	if least < w.Min-1 || most > w.Max*(1+1e-6) {
		t.Errorf("rates from %.0f to %.0f", least, most)
	}
	if mean := last / (windows * w.Every.Seconds()); math.Abs(mean/w.Mean()-1) > 0.03 {
		t.Errorf("mean %.0f, want %.0f", mean, w.Mean())
	}
}

// The figures of each mobile line, in Mbit/s and seconds, as they were measured from the traces.
func TestMobileLinesHaveTheFiguresOfTheirTraces(t *testing.T) {
	measured := map[string][6]float64{ // length, mean, p5, p50, p95, longest silence
		"verizon-lte-down": {140, 5.0, 1.1, 4.3, 11.1, 1.4}, "verizon-lte-up": {140, 6.0, 1.2, 5.7, 11.5, 1.7},
		"tmobile-lte-down": {140, 16.7, 4.1, 13.8, 37.2, 0.9}, "tmobile-lte-up": {140, 13.3, 2.5, 11.8, 27.8, 0.7},
		"lte-driving-down": {786, 5.2, 0.7, 5.4, 9.5, 1.5}, "lte-driving-up": {1012, 0.83, 0, 1.0, 1.2, 78},
		"lte-driving-2016-down": {120, 4.6, 0.6, 3.7, 11.2, 1.1},
		"umts-driving-down":     {928, 2.0, 0, 1.9, 5.4, 5.8}, "evdo-driving-down": {1062, 0.5, 0, 0.4, 1.5, 11.6},
	}
	if len(rate.Mobile()) != len(measured) {
		t.Errorf("%d lines, want %d", len(rate.Mobile()), len(measured))
	}
	for _, m := range rate.Mobile() {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			want, known := measured[m.Name]
			got := [6]float64{m.Length.Seconds(), m.Average / 125e3, m.P5 / 125e3, m.P50 / 125e3, m.P95 / 125e3,
				m.Silence.Seconds()}
			for i := range got {
				if math.Abs(got[i]-want[i]) > 1e-9 {
					t.Fatalf("figures %v, want %v (known: %v)", got, want, known)
				}
			}
			// And a process of it has them: shares of the time, in pieces of 50 ms.
			p, last := m.Start(draws(11)), 0.0
			const piece, count = 50 * time.Millisecond, 20 * 40000
			rates, quiet, longest := make([]float64, count), 0, 0
			for k := range rates {
				next := p.Carried(time.Duration(k+1) * piece)
				rates[k], last = (next-last)/piece.Seconds()/125e3, next
				if quiet++; rates[k] > 1e-9 {
					quiet = 0
				}
				longest = max(longest, quiet)
			}
			if mean := last / 125e3 / (count * piece.Seconds()); math.Abs(mean/want[1]-1) > 0.03 {
				t.Errorf("mean %.3f, want %.3f", mean, want[1])
			}
			if silence := float64(longest) * piece.Seconds(); silence < want[5]-0.1 {
				t.Errorf("longest silence %.2f s, want %.2f", silence, want[5])
			}
			slices.Sort(rates)
			for i, q := range []float64{0.05, 0.5, 0.95} {
				if at := rates[int(q*count)]; math.Abs(at-want[2+i]) > 0.04*want[1] {
					t.Errorf("quantile %.2f is %.3f, want %.3f", q, at, want[2+i])
				}
			}
		})
	}
}

func TestRatesThatAreNoneSayWhatIsAccepted(t *testing.T) {
	sound := rate.Mobile()[0].Quantiles
	for want, change := range map[string]func(q *rate.Quantiles){
		"P50":     func(q *rate.Quantiles) { q.P5 = q.P50 + 1 },
		"P95":     func(q *rate.Quantiles) { q.P95 = q.P50 / 2 },
		"Silence": func(q *rate.Quantiles) { q.Silence = q.Length },
		"Average": func(q *rate.Quantiles) { q.Average *= 3 },
	} {
		q := sound
		change(&q)
		if err := q.Validate(); err == nil || !strings.Contains(err.Error(), strings.ToLower(want[1:])) {
			t.Errorf("%s: %v", want, err)
		}
	}
	for _, r := range []rate.Rate{
		rate.Constant(-1), rate.Constant(math.NaN()), rate.Constant(math.Inf(1)), rate.RandomWalk{},
		rate.RandomWalk{Step: 1, Every: time.Second, Min: 2, Max: 1}, rate.NewTrace(rate.Trace{}),
		rate.NewTrace(rate.Trace{Points: []rate.Point{{Rate: 0}}}),
		rate.NewTrace(rate.Trace{Points: []rate.Point{{Rate: 1}}, Repeat: true}),
		rate.NewTrace(rate.Trace{Points: []rate.Point{{Rate: 1}}, Anywhere: true}),
		&rate.Opportunities{}, &rate.Opportunities{At: []uint32{0, 0}}, &rate.Opportunities{At: []uint32{2, 1}},
	} {
		if err := r.Validate(); err == nil {
			t.Errorf("%+v is accepted", r)
		}
	}
}

func TestFilesThatAreNoTracesSayWhereAndWhat(t *testing.T) {
	for text, want := range map[string]string{
		"": `f:1: empty file, expected the line "time_s,rate_mbps"`,
		"time_s,rate_mb\n": `f:1: header "time_s,rate_mb", expected "time_s,rate_mbps"; ` +
			`for seconds there may be ms or us, for mbps bps, kbps or gbps`,
		"time_s,rate_mbps\n":             `f:2: no points after the header, expected lines such as "0.5,12.5"`,
		"time_s,rate_mbps\n1,2\n1,3\n":   `f:3: time_s in "1,3" is not after the previous line's (1s)`,
		"time_s,rate_bps\n1,-2\n":        `f:2: rate_bps "-2", expected a decimal number from 0 to 8000000000000000`,
		"time_s,rate_gbps\n1,1\n2,1,3\n": `f:3: "2,1,3" has 3 fields, expected 2: time_s,rate_gbps`,
	} {
		if _, _, err := rate.ReadTrace(strings.NewReader(text), "f"); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"":         `f:1: no instant after 0, expected lines with a number of milliseconds each`,
		"0\n":      `f:2: no instant after 0, expected lines with a number of milliseconds each`,
		"5\n4\n":   `f:2: 4 ms is before the line above (5 ms)`,
		"1\n1.5\n": `f:2: "1.5", expected a whole number of milliseconds up to 31536000000`,
		"-1\n":     `f:1: "-1", expected a whole number of milliseconds up to 31536000000`,
	} {
		if _, _, err := rate.ReadOpportunities(strings.NewReader(text), "f"); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func FuzzReadOpportunities(f *testing.F) {
	f.Add("0\n1\n1\n500\n")
	f.Add("# lte\n\n7 # ms\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		at, _, err := rate.ReadOpportunities(strings.NewReader(text), "f")
		if err != nil {
			if at != nil || !strings.HasPrefix(err.Error(), "f:") {
				t.Fatalf("%d instants, %v", len(at), err)
			}
			return
		}
		if err := (&rate.Opportunities{At: at}).Validate(); err != nil {
			t.Fatal(err)
		}
	})
}
