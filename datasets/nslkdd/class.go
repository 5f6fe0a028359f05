package nslkdd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gradwire/gradwire/datasets/input"
)

// Class is one of the five kinds of traffic; its value is the label.
type Class int32

// The classes in the order of their labels.
const (
	Normal Class = iota
	DoS          // denial of service
	Probe        // scanning
	R2L          // access from a remote machine
	U2R          // user to root
)

var classNames = []string{"Normal", "DoS", "Probe", "R2L", "U2R"}

// ClassNames are the names of the classes, in the order of their labels.
func ClassNames() []string { return slices.Clone(classNames) }

// attacks are the names of column 42 in both published files, sorted, and
// their classes. Some authors count httptunnel as U2R and worm as R2L; neither
// occurs in KDDTrain+.
var attacks = [...]struct {
	name  string
	class Class
}{
	{"apache2", DoS}, {"back", DoS}, {"buffer_overflow", U2R}, {"ftp_write", R2L},
	{"guess_passwd", R2L}, {"httptunnel", R2L}, {"imap", R2L}, {"ipsweep", Probe},
	{"land", DoS}, {"loadmodule", U2R}, {"mailbomb", DoS}, {"mscan", Probe},
	{"multihop", R2L}, {"named", R2L}, {"neptune", DoS}, {"nmap", Probe},
	{"normal", Normal}, {"perl", U2R}, {"phf", R2L}, {"pod", DoS},
	{"portsweep", Probe}, {"processtable", DoS}, {"ps", U2R}, {"rootkit", U2R},
	{"saint", Probe}, {"satan", Probe}, {"sendmail", R2L}, {"smurf", DoS},
	{"snmpgetattack", R2L}, {"snmpguess", R2L}, {"spy", R2L}, {"sqlattack", U2R},
	{"teardrop", DoS}, {"udpstorm", DoS}, {"warezclient", R2L}, {"warezmaster", R2L},
	{"worm", DoS}, {"xlock", R2L}, {"xsnoop", R2L}, {"xterm", U2R},
}

// ParseClass returns the class of an attack name ("normal" included) as it
// stands in column 42. An unknown name is an error that lists the known ones.
func ParseClass(attack string) (Class, error) {
	for low, high := 0, len(attacks); low < high; {
		middle := (low + high) / 2
		switch a := &attacks[middle]; {
		case a.name == attack:
			return a.class, nil
		case a.name < attack:
			low = middle + 1
		default:
			high = middle
		}
	}
	names := make([]string, len(attacks))
	for i, a := range attacks {
		names[i] = a.name
	}
	return 0, fmt.Errorf("unknown attack name %s; there are %s", input.Quote(attack), strings.Join(names, ", "))
}
