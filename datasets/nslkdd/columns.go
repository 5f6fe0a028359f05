package nslkdd

import (
	"fmt"
	"slices"
)

// The two encodings, named after their number of inputs.
const (
	// Encoding93 keeps the nine numeric columns whose absolute Pearson
	// correlation with "is an attack" exceeds 0.5 on KDDTrain+.
	Encoding93 = 93
	// Encoding122 keeps all 38 numeric columns.
	Encoding122 = 122
)

// fields is the number of comma-separated fields of a record.
const fields = 43

// Fields with a special meaning, counted from 0.
const (
	fieldProtocol   = 1
	fieldService    = 2
	fieldFlag       = 3
	fieldAttack     = 41
	fieldDifficulty = 42
)

// field is one column of the files: its published name and, where it is
// numeric, the largest value that is accepted; the smallest is always 0.
type field struct {
	name string
	max  float64
}

// Bounds of the numeric columns: what the column's definition implies, or far
// above anything the published files contain.
const (
	maxFlag       = 1
	maxRate       = 1
	maxEvents     = 1e6 // published maximum: 7,479
	maxSeconds    = 1e7 // published maximum: 57,715
	maxBytes      = 1e12
	maxWindow     = 511 // connections in a two-second window
	maxHostWindow = 255 // of the last connections to the same host
)

var fieldTable = [fields]field{
	{"duration", maxSeconds}, {"protocol_type", 0}, {"service", 0}, {"flag", 0},
	{"src_bytes", maxBytes}, {"dst_bytes", maxBytes}, {"land", maxFlag},
	{"wrong_fragment", maxEvents}, {"urgent", maxEvents}, {"hot", maxEvents},
	{"num_failed_logins", maxEvents}, {"logged_in", maxFlag}, {"num_compromised", maxEvents},
	{"root_shell", maxFlag}, {"su_attempted", 2}, {"num_root", maxEvents},
	{"num_file_creations", maxEvents}, {"num_shells", maxEvents}, {"num_access_files", maxEvents},
	{"num_outbound_cmds", maxEvents}, {"is_host_login", maxFlag}, {"is_guest_login", maxFlag},
	{"count", maxWindow}, {"srv_count", maxWindow},
	{"serror_rate", maxRate}, {"srv_serror_rate", maxRate}, {"rerror_rate", maxRate},
	{"srv_rerror_rate", maxRate}, {"same_srv_rate", maxRate}, {"diff_srv_rate", maxRate},
	{"srv_diff_host_rate", maxRate}, {"dst_host_count", maxHostWindow},
	{"dst_host_srv_count", maxHostWindow}, {"dst_host_same_srv_rate", maxRate},
	{"dst_host_diff_srv_rate", maxRate}, {"dst_host_same_src_port_rate", maxRate},
	{"dst_host_srv_diff_host_rate", maxRate}, {"dst_host_serror_rate", maxRate},
	{"dst_host_srv_serror_rate", maxRate}, {"dst_host_rerror_rate", maxRate},
	{"dst_host_srv_rerror_rate", maxRate}, {"attack", 0}, {"difficulty", 21},
}

// correlated are the fields that Encoding93 keeps, in the files' order:
// logged_in, count, serror_rate, srv_serror_rate, same_srv_rate,
// dst_host_srv_count, dst_host_same_srv_rate, dst_host_serror_rate,
// dst_host_srv_serror_rate.
var correlated = []int{11, 22, 24, 25, 28, 32, 33, 37, 38}

// Vocabularies of the symbolic columns, in the order of their one-hot columns.
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

// Words are the vocabularies of the symbolic columns, each in the order of its one-hot columns.
func Words() (ofProtocol, ofService, ofFlag []string) {
	return slices.Clone(protocols), slices.Clone(services), slices.Clone(flags)
}

// numericFields returns the fields that an encoding keeps as numbers.
func numericFields(encoding int) ([]int, error) {
	switch encoding {
	case Encoding93:
		return slices.Clone(correlated), nil
	case Encoding122:
		all := make([]int, 0, fields)
		for i := range fieldTable {
			if i < fieldProtocol || i > fieldFlag && i < fieldAttack {
				all = append(all, i)
			}
		}
		return all, nil
	}
	return nil, fmt.Errorf("NSL-KDD encoding %d; %d and %d inputs are accepted", encoding, Encoding93, Encoding122)
}

// Columns returns the names of an encoding's inputs in their order: the
// numeric columns under their published names, then "protocol_type=icmp" …,
// "service=IRC" …, "flag=OTH" …. An encoding other than 93 and 122 is an
// error.
func Columns(encoding int) ([]string, error) {
	numeric, err := numericFields(encoding)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, encoding)
	for _, i := range numeric {
		names = append(names, fieldTable[i].name)
	}
	for _, symbolic := range []struct {
		field int
		words []string
	}{{fieldProtocol, protocols}, {fieldService, services}, {fieldFlag, flags}} {
		for _, word := range symbolic.words {
			names = append(names, fieldTable[symbolic.field].name+"="+word)
		}
	}
	return names, nil
}
