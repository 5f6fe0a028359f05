package synthetic

// quiet is what a record's numeric columns are where its profile says nothing.
var quiet = []column{
	{hostCount, number(1, 255).orZero(0.02)},
	{hostDiffSrvRate, rate(0, 0.1).orZero(0.5)},
	{hostSameSrcPortRate, rate(0, 0.4).orZero(0.4)},
	{hostSrvDiffHostRate, rate(0, 0.1).orZero(0.6)},
	{hostRerrorRate, rate(0, 0.1).orZero(0.8)},
	{hostSrvRerrorRate, like(hostRerrorRate, 0.02)},
	{diffSrvRate, rate(0, 0.1).orZero(0.8)},
	{srvDiffHostRate, rate(0, 0.3).orZero(0.7)},
	{rerrorRate, rate(0, 0.2).orZero(0.9)},
	{srvRerrorRate, like(rerrorRate, 0.02)},
	{serrorRate, rate(0, 0.2).orZero(0.92)},
	{sameSrvRate, rate(0.5, 1).orTop(0.9)},
	{hostSerrorRate, rate(0, 0.1).orZero(0.88)},
}

// afterwards follow other columns; they are drawn last.
var afterwards = []column{
	{srvSerrorRate, like(serrorRate, 0.04)},
	{hostSrvSerrorRate, like(hostSerrorRate, 0.04)},
}

func only(names ...string) mixture {
	m := make(mixture, len(names))
	for i, name := range names {
		m[i] = weighted{name, 1}
	}
	return m
}

// Contested ground: kinds of connection that several classes share in all but
// the joint value of two properties, two columns' halves or a half and a group
// of services. One class has both high or both low, another one high and one
// low, so that either property alone says little, and a linear classifier
// fails.

// Symbols of contested ground: inner and outer are two groups of services,
// mixed is common to all.
var (
	usual = mixture{{"SF", 0.7}, {"REJ", 0.15}, {"S0", 0.05}, {"RSTO", 0.1}}
	inner = symbols{only("tcp"), mixture{{"telnet", 0.8}, {"shell", 0.2}}, usual}
	outer = symbols{only("tcp"), mixture{{"finger", 0.8}, {"whois", 0.2}}, usual}
	mixed = symbols{mixture{{"tcp", 0.8}, {"udp", 0.2}}, mixture{{"domain", 0.7}, {"auth", 0.3}}, usual}
)

// Halves of columns.
var (
	lowRate   = rate(0, 0.3)
	highRate  = rate(0.7, 1)
	lowHost   = number(0, 95)
	highHost  = number(160, 255)
	lowCount  = number(0, 205)
	highCount = number(305, 511)
)

// contested returns a profile on contested ground: the class has its own two columns, and all
// classes share the others.
func contested(class int, weight float64, s symbols, a, b column) profile {
	idle := []column{
		{count, number(1, 150)}, {srvCount, number(1, 100)}, {sameSrvRate, rate(0.2, 0.8)},
		{hostSrvCount, number(50, 200)}, {hostSameSrvRate, rate(0.2, 0.8)}, {srcBytes, size(5, 12)},
		{dstBytes, size(1, 12).orZero(0.4)},
	}
	return profile{class, weight, s, append(idle, a, b)}
}

var profiles = []profile{
	// Ordinary use.
	{normal, 0.51, symbols{only("tcp"), mixture{{"http", 0.96}, {"http_443", 0.04}},
		mixture{{"SF", 0.95}, {"S1", 0.02}, {"RSTR", 0.03}}}, []column{
		{loggedIn, event(0.95)}, {srcBytes, size(6, 10)}, {dstBytes, size(8, 14)},
		{count, number(1, 25)}, {srvCount, number(1, 30)}, {hostSrvCount, number(120, 255).orZero(0.02)},
		{hostSameSrvRate, rate(0.7, 1).orTop(0.6)}}},
	{normal, 0.12, symbols{only("udp"), mixture{{"domain_u", 0.9}, {"ntp_u", 0.1}}, only("SF")}, []column{
		{srcBytes, size(5, 6)}, {dstBytes, size(5, 8)}, {count, number(1, 180)}, {srvCount, number(1, 180)},
		{hostSrvCount, number(100, 255)}, {hostSameSrvRate, rate(0.5, 1).orTop(0.4)}}},
	{normal, 0.10, symbols{only("tcp"), mixture{{"smtp", 0.9}, {"pop_3", 0.06}, {"auth", 0.04}},
		mixture{{"SF", 0.95}, {"S1", 0.05}}}, []column{
		{loggedIn, event(0.9)}, {duration, number(0, 5)}, {srcBytes, size(8, 12)}, {dstBytes, size(8, 10)},
		{count, number(1, 8)}, {srvCount, number(1, 8)}, {hostSrvCount, number(30, 240)},
		{hostSameSrvRate, rate(0.2, 1)}}},
	{normal, 0.08, symbols{only("tcp"), mixture{{"ftp_data", 0.7}, {"ftp", 0.2}, {"telnet", 0.1}},
		mixture{{"SF", 0.97}, {"RSTO", 0.03}}}, []column{
		{loggedIn, event(0.8)}, {duration, size(0, 8)}, {srcBytes, size(6, 18)}, {dstBytes, size(1, 10).orZero(0.5)},
		{hot, number(0, 3)}, {count, number(1, 10)}, {hostSrvCount, number(25, 150)},
		{hostSameSrvRate, rate(0.05, 0.8)},
		{hostSameSrcPortRate, rate(0, 1)}, {guestLogin, event(0.1)}}},
	{normal, 0.02, symbols{only("tcp"), mixture{{"http", 0.3}, {"private", 0.2}, {"*", 0.5}},
		mixture{{"REJ", 0.8}, {"S0", 0.1}, {"RSTO", 0.1}}}, []column{
		{count, number(1, 150)}, {sameSrvRate, rate(0.05, 1).orTop(0.3)}, {hostSrvCount, number(1, 200)},
		{hostSameSrvRate, rate(0.05, 1)},
		{rerrorRate, rate(0.4, 1).orTop(0.5)}, {hostRerrorRate, rate(0.1, 1)}}},
	{normal, 0.014, symbols{mixture{{"icmp", 0.5}, {"udp", 0.5}},
		mixture{{"eco_i", 0.25}, {"ecr_i", 0.25}, {"other", 0.3}, {"private", 0.2}}, only("SF")}, []column{
		{srcBytes, size(3, 8)}, {count, number(1, 60)}, {hostSrvCount, number(1, 255)}, {hostSameSrvRate, rate(0, 1)}}},

	// Denial of service: floods of half-open connections, of echoes, of
	// requests that look like ordinary ones, and broken fragments.
	{dos, 0.63, symbols{only("tcp"), mixture{{"private", 0.4}, {"telnet", 0.05}, {"http", 0.05}, {"*", 0.5}},
		mixture{{"S0", 0.97}, {"RSTO", 0.03}}}, []column{
		{count, number(60, 290)}, {srvCount, number(1, 24)}, {serrorRate, rate(0.8, 1).orTop(0.9)},
		{sameSrvRate, rate(0, 0.25)},
		{diffSrvRate, rate(0.04, 0.1)}, {hostCount, number(220, 255)}, {hostSrvCount, number(1, 30)},
		{hostSameSrvRate, rate(0, 0.13)},
		{hostSerrorRate, rate(0.8, 1).orTop(0.8)}}},
	{dos, 0.10, symbols{only("tcp"), mixture{{"private", 0.5}, {"*", 0.5}}, mixture{{"REJ", 0.95}, {"SF", 0.05}}},
		[]column{
			{count, number(100, 290)}, {srvCount, number(1, 24)}, {rerrorRate, rate(0.8, 1).orTop(0.9)},
			{sameSrvRate, rate(0, 0.25)}, {hostSrvCount, number(1, 30)}, {hostSameSrvRate, rate(0, 0.13)},
			{hostRerrorRate, rate(0.7, 1).orTop(0.6)}}},
	{dos, 0.06, symbols{only("icmp"), only("ecr_i"), only("SF")}, []column{
		{srcBytes, size(9, 10)}, {count, number(85, 511)}, {srvCount, number(85, 511)}, {hostSrvCount, number(36, 255)},
		{hostSameSrvRate, rate(0.2, 1)}, {wrongFragment, event(0.07)}}},
	{dos, 0.02, symbols{only("tcp"), only("http"), mixture{{"SF", 0.9}, {"RSTR", 0.1}}}, []column{
		{loggedIn, event(1)}, {srcBytes, size(15, 16)}, {dstBytes, size(12, 13)}, {hot, number(1, 3)},
		{compromised, event(0.9)},
		{count, number(1, 8)}, {hostSrvCount, number(25, 255)}, {hostSameSrvRate, rate(0.9, 1).orTop(0.9)}}},
	{dos, 0.02, symbols{only("udp"), only("private"), only("SF")}, []column{
		{srcBytes, size(4, 5)}, {wrongFragment, number(1, 3)}, {count, number(10, 110)}, {srvCount, number(10, 90)},
		{hostSrvCount, number(10, 100)}, {hostSameSrvRate, rate(0.05, 0.5)}}},

	// Scans.
	{probe, 0.30, symbols{mixture{{"icmp", 0.87}, {"tcp", 0.13}},
		mixture{{"eco_i", 0.86}, {"private", 0.1}, {"*", 0.04}}, mixture{{"SF", 0.9}, {"REJ", 0.1}}}, []column{
		{srcBytes, number(0, 18)}, {count, number(0, 4)}, {srvCount, number(1, 45)}, {hostCount, number(1, 20)},
		{hostSrvCount, number(1, 195)},
		{hostSameSrvRate, rate(0.1, 1).orTop(0.8)}, {hostSameSrcPortRate, rate(0.1, 1).orTop(0.8)}}},
	{probe, 0.32, symbols{mixture{{"tcp", 0.6}, {"udp", 0.4}}, mixture{{"private", 0.2}, {"other", 0.75}, {"*", 0.05}},
		mixture{{"REJ", 0.5}, {"SF", 0.45}, {"S0", 0.05}}}, []column{
		{count, number(5, 511)}, {srvCount, number(1, 14)}, {rerrorRate, rate(0.5, 1).orZero(0.4)},
		{sameSrvRate, rate(0, 0.5)}, {diffSrvRate, rate(0.2, 1).orTop(0.5)},
		{hostSrvCount, number(0, 40)}, {hostSameSrvRate, rate(0, 0.18)}, {hostDiffSrvRate, rate(0.1, 1)},
		{hostRerrorRate, rate(0.4, 0.95)}}},
	{probe, 0.23, symbols{only("tcp"), mixture{{"private", 0.65}, {"other", 0.15}, {"*", 0.2}},
		mixture{{"RSTR", 0.8}, {"REJ", 0.1}, {"RSTOS0", 0.04}, {"S0", 0.02}, {"OTH", 0.04}}}, []column{
		{duration, size(0, 15).orZero(0.7)}, {count, number(0, 120)}, {rerrorRate, rate(0.7, 1).orTop(0.9)},
		{sameSrvRate, rate(0, 1).orTop(0.7)},
		{hostSrvCount, number(0, 6)}, {hostSameSrvRate, rate(0, 0.04)}, {hostDiffSrvRate, rate(0.15, 0.85)},
		{hostRerrorRate, rate(0.2, 1)}}},

	// Access from outside: they look like ordinary transfers and logins.
	{r2l, 0.75, symbols{only("tcp"), mixture{{"ftp_data", 0.65}, {"ftp", 0.35}}, only("SF")}, []column{
		{loggedIn, event(0.97)}, {duration, size(0, 13).orZero(0.5)}, {srcBytes, size(8, 13)},
		{hot, number(1, 30).orZero(0.5)}, {guestLogin, event(0.4)},
		{count, number(1, 3)}, {hostSrvCount, number(8, 60)}, {hostSameSrvRate, rate(0.1, 1).orTop(0.5)},
		{hostSameSrcPortRate, rate(0, 1).orTop(0.5)}}},
	{r2l, 0.25, symbols{only("tcp"), mixture{{"telnet", 0.8}, {"imap4", 0.2}}, mixture{{"RSTO", 0.6}, {"SF", 0.4}}},
		[]column{
			{failedLogins, number(1, 3)}, {hot, event(0.9)}, {srcBytes, size(6, 7)}, {dstBytes, size(7, 11)},
			{loggedIn, event(0.1)},
			{count, number(1, 4)}, {hostSrvCount, number(1, 12)}, {hostSameSrvRate, rate(0.2, 1)}}},

	// From user to root.
	{u2r, 1, symbols{only("tcp"), mixture{{"telnet", 0.7}, {"ftp_data", 0.2}, {"login", 0.1}}, only("SF")}, []column{
		{loggedIn, event(0.95)}, {duration, size(4, 9)}, {rootShell, event(0.6)}, {fileCreations, number(0, 4)},
		{compromised, number(0, 4)},
		{shells, event(0.3)}, {hot, number(0, 4)}, {srcBytes, size(8, 11)}, {dstBytes, size(9, 13)},
		{count, number(1, 3)}, {hostSrvCount, number(1, 8)}, {hostSameSrvRate, rate(0.4, 1).orTop(0.4)}}},

	// Contested ground.
	contested(normal, 0.018, inner, column{sameSrvRate, highRate}, column{loggedIn, event(0.6)}),
	contested(normal, 0.018, outer, column{sameSrvRate, lowRate}, column{loggedIn, event(0.6)}),
	contested(dos, 0.022, inner, column{sameSrvRate, lowRate}, column{loggedIn, event(0.1)}),
	contested(dos, 0.022, outer, column{sameSrvRate, highRate}, column{loggedIn, event(0.1)}),
	contested(normal, 0.007, mixed, column{sameSrvRate, lowRate}, column{hostSrvCount, lowHost}),
	contested(normal, 0.014, mixed, column{sameSrvRate, highRate}, column{hostSrvCount, highHost}),
	contested(dos, 0.017, mixed, column{sameSrvRate, lowRate}, column{hostSrvCount, highHost}),
	contested(dos, 0.010, mixed, column{sameSrvRate, highRate}, column{hostSrvCount, lowHost}),
	contested(probe, 0.035, outer, column{count, lowCount}, column{hostSameSrvRate, highRate}),
	contested(probe, 0.035, inner, column{count, highCount}, column{hostSameSrvRate, lowRate}),
}
