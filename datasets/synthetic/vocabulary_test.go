package synthetic

import (
	"testing"

	"github.com/gradwire/gradwire/datasets/nslkdd"
)

// The numeric columns here repeat the reader's and must stay the same.
func TestColumnsAreTheReaders(t *testing.T) {
	all, err := nslkdd.Columns(nslkdd.Encoding122)
	if err != nil {
		t.Fatal(err)
	}
	nine, err := nslkdd.Columns(nslkdd.Encoding93)
	if err != nil {
		t.Fatal(err)
	}
	for i, column := range correlated {
		if all[column] != nine[i] {
			t.Errorf("numeric column %d of 93 is %s here, %s in the reader", i, all[column], nine[i])
		}
	}
	for column, name := range map[numeric]string{
		duration: "duration", srcBytes: "src_bytes", dstBytes: "dst_bytes", wrongFragment: "wrong_fragment", hot: "hot",
		failedLogins: "num_failed_logins", compromised: "num_compromised", rootShell: "root_shell",
		fileCreations: "num_file_creations",
		shells:        "num_shells", outboundCommands: "num_outbound_cmds", guestLogin: "is_guest_login",
		srvCount:   "srv_count",
		rerrorRate: "rerror_rate", diffSrvRate: "diff_srv_rate", hostCount: "dst_host_count",
		hostDiffSrvRate:     "dst_host_diff_srv_rate",
		hostSameSrcPortRate: "dst_host_same_src_port_rate", hostRerrorRate: "dst_host_rerror_rate",
		hostSrvRerrorRate: "dst_host_srv_rerror_rate",
	} {
		if all[column] != name {
			t.Errorf("column %d is %s here, %s in the reader", column, name, all[column])
		}
	}
}

func TestEveryProfileNamesKnownWordsAndEachClassHasOne(t *testing.T) {
	g := newGenerator(122) // panics on an unknown word
	if len(g.kinds) != len(profiles) {
		t.Errorf("%d kinds of %d profiles", len(g.kinds), len(profiles))
	}
	for class, c := range g.byClass {
		if len(c.index) == 0 {
			t.Errorf("class %s has no profile", nslkdd.ClassNames()[class])
		}
	}
}
