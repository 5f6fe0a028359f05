package synthetic

import "slices"

// The columns and words of NSL-KDD in the order of its 122-input encoding: 38
// numeric columns, then one column for each protocol, service and flag.

// numeric is a numeric column of the 122-input encoding.
type numeric int

const (
	duration numeric = iota
	srcBytes
	dstBytes
	land
	wrongFragment
	urgent
	hot
	failedLogins
	loggedIn
	compromised
	rootShell
	suAttempted
	numRoot
	fileCreations
	shells
	accessFiles
	outboundCommands
	hostLogin
	guestLogin
	count
	srvCount
	serrorRate
	srvSerrorRate
	rerrorRate
	srvRerrorRate
	sameSrvRate
	diffSrvRate
	srvDiffHostRate
	hostCount
	hostSrvCount
	hostSameSrvRate
	hostDiffSrvRate
	hostSameSrcPortRate
	hostSrvDiffHostRate
	hostSerrorRate
	hostSrvSerrorRate
	hostRerrorRate
	hostSrvRerrorRate
	numerics
)

// correlated are the numeric columns of the 93-input encoding.
var correlated = []numeric{
	loggedIn, count, serrorRate, srvSerrorRate, sameSrvRate,
	hostSrvCount, hostSameSrvRate, hostSerrorRate, hostSrvSerrorRate,
}

var (
	protocols = []string{"icmp", "tcp", "udp"}
	services  = []string{
		"IRC", "X11", "Z39_50", "aol", "auth", "bgp", "courier", "csnet_ns", "ctf", "daytime",
		"discard", "domain", "domain_u", "echo", "eco_i", "ecr_i", "efs", "exec", "finger", "ftp",
		"ftp_data", "gopher", "harvest", "hostnames", "http", "http_2784", "http_443", "http_8001", "imap4", "iso_tsap",
		"klogin", "kshell", "ldap", "link", "login", "mtp", "name", "netbios_dgm", "netbios_ns", "netbios_ssn",
		"netstat", "nnsp", "nntp", "ntp_u", "other", "pm_dump", "pop_2", "pop_3", "printer", "private",
		"red_i", "remote_job", "rje", "shell", "smtp", "sql_net", "ssh", "sunrpc", "supdup", "systat",
		"telnet", "tftp_u", "tim_i", "time", "urh_i", "urp_i", "uucp", "uucp_path", "vmnet", "whois",
	}
	flags = []string{"OTH", "REJ", "RSTO", "RSTOS0", "RSTR", "S0", "S1", "S2", "S3", "SF", "SH"}
)

// The classes, in the order of their labels.
const (
	normal = iota
	dos
	probe
	r2l
	u2r
	classes
)

var classNames = []string{"Normal", "DoS", "Probe", "R2L", "U2R"}

// word returns the index of a word in a sorted vocabulary; profiles name
// nothing else.
func word(words []string, name string) int {
	i, found := slices.BinarySearch(words, name)
	if !found {
		panic("synthetic: a profile names an unknown word: " + name)
	}
	return i
}
