package link

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestMatrixIsWhatItsFileSays(t *testing.T) {
	const ms = time.Millisecond
	m, err := ReadMatrix(strings.NewReader("# pings\nround_trip_ms,lyon,rome,oslo\n\noslo,41,58.5,0.4\r\n"+
		"lyon,,24,\nrome,26,,# as from oslo\n"), "pings.csv")
	if err != nil {
		t.Fatal(err)
	}
	want := [][]time.Duration{{0, 12 * ms, 41 * ms / 2}, {13 * ms, 0, 117 * ms / 4},
		{41 * ms / 2, 117 * ms / 4, ms / 5}}
	if got := fmt.Sprint(m.Sites); got != "[lyon rome oslo]" {
		t.Errorf("sites %s", got)
	}
	for from := range want {
		for to, delay := range want[from] {
			if got := m.Delay(from, to); got != delay {
				t.Errorf("from %s to %s it takes %v, want %v", m.Sites[from], m.Sites[to], got, delay)
			}
		}
	}
	for unit, want := range map[string]time.Duration{"delay_s": 4 * time.Second, "delay_ms": 4 * ms, "delay_us": 4000,
		"round_trip_s": 2 * time.Second, "round_trip_us": 2000} {
		m, err := ReadMatrix(strings.NewReader(unit+",a,b\na,,4\nb,,\n"), "")
		if err != nil || m.Delay(1, 0) != want {
			t.Errorf("%s: 4 is %v (%v), want %v", unit, m.Delay(1, 0), err, want)
		}
	}
}

func TestMistakesOfAMatrixAreNamed(t *testing.T) {
	const number = ", expected a decimal number from 0 to "
	for text, want := range map[string]string{
		"": `1: empty file, expected a first line such as "round_trip_ms,lyon,rome"`,
		"site,a\n": `1: the first line begins with "site", expected a unit such as round_trip_ms` +
			" or delay_ms",
		"delay_ms\n":           "1: 0 sites, expected 1 to 2000",
		"delay_ms,a,a\n":       `1: site 2 is "a", expected a name that differs from the others`,
		"delay_ms,a,\n":        `1: site 2 is "", expected a name that differs from the others`,
		"delay_ms,a\nc,1\n":    `2: "c" is no site of the first line`,
		"delay_ms,a\na,\na,\n": "3: a second line of a",
		"delay_ms,a,b\na,1\n":  "2: 2 fields, expected 3: the site and a delay to each of the 2",

		"delay_ms,a,b\na,,x\n":               `2: to b: delay_ms "x"` + number + "31536000000",
		"delay_ms,a,b\na,,-1\n":              `2: to b: delay_ms "-1"` + number + "31536000000",
		"round_trip_s,a,b\na,,70000000":      `2: to b: round_trip_s "70000000"` + number + "63072000",
		"delay_ms,a,b\na,,1\n":               "3: no line of b",
		"delay_ms,a,b,c\na,,1,\nb,,,2\nc,,,": "5: no delay between a and c in either direction",
	} {
		if _, err := ReadMatrix(strings.NewReader(text), "m.csv"); err == nil || err.Error() != "m.csv:"+want {
			t.Errorf("%q: error %v, want m.csv:%s", text, err, want)
		}
	}
}

// The figures are those of the tables that were published, read off by hand.
func TestPresetsHaveTheFiguresOfTheirTables(t *testing.T) {
	published := map[string]map[string]float64{
		"regions-aws-2024": {"fra nrt": 227, "iad cmh": 14, "syd iad": 198, "hkg nrt": 56, "yul arn": 108, "kix kix": 3,
			"lhr dub": 14, "bom syd": 152, "cdg mxp": 21, "pdx sfo": 22, "sin icn": 85, "iad iad": 0, "syd syd": 4},
		"regions-ibm-2026": {"dal sao": 141, "tok osa": 9, "syd sao": 326, "fra wdc": 86, "lon mad": 26, "mum che": 24,
			"mon tor": 10, "tok syd": 101, "sao tok": 283, "fra fra": 0},
	}
	sites := map[string]int{"regions-aws-2024": 18, "regions-ibm-2026": 13}
	for _, p := range Presets() {
		m := p.Matrix()
		if len(m.Sites) != sites[p.Name] || len(published[p.Name]) == 0 {
			t.Errorf("%s: %d sites, want %d", p.Name, len(m.Sites), sites[p.Name])
		}
		place := map[string]int{}
		for i, site := range m.Sites {
			place[site] = i
		}
		for pair, trip := range published[p.Name] {
			a, b, _ := strings.Cut(pair, " ")
			want := time.Duration(trip * 1e6 / 2)
			if there, back := m.Delay(place[a], place[b]), m.Delay(place[b], place[a]); there != want || back != want {
				t.Errorf("%s: %s: %v there, %v back, want %v", p.Name, pair, there, back, want)
			}
		}
		for i := range m.Sites {
			for j := range i {
				if m.Delay(i, j) <= 0 {
					t.Errorf("%s: nothing between %s and %s", p.Name, m.Sites[i], m.Sites[j])
				}
			}
		}
	}
}
