// Package hint knows the commands of Ray, kubectl, Flower and their like, and what does here what
// they do there.
package hint

import "strings"

// Of says what does here what words do elsewhere, behind the path of a group of commands, which is
// empty for the program itself. It looks at two words at most.
func Of(path string, words []string) (text string, known bool) {
	for n := min(len(words), 2); n > 0 && !known; n-- {
		text, known = hints[strings.TrimSpace(path+" "+strings.Join(words[:n], " "))]
	}
	return text, known
}

// hints have the path of a group as their keys, and one word or two that it does not know.
var hints = map[string]string{
	"start":           aCluster,
	"init":            aPlan + "; 'gradwire identity init' makes the authority of a cluster",
	"new":             aPlan,
	"create":          aPlan,
	"create plan":     aPlan,
	"apply":           aSubmission,
	"job":             aSubmission + "; 'gradwire submissions' lists them",
	"job submit":      aSubmission,
	"job list":        allSubmissions,
	"job status":      aStatus,
	"job logs":        someLogs,
	"job stop":        anEnd,
	"job delete":      aRemoval,
	"jobs":            allSubmissions,
	"ps":              allSubmissions + ", 'gradwire actors' the actors outside of runs",
	"ls":              allSubmissions + ", 'gradwire nodes' the nodes, 'gradwire list' what plans can name",
	"top":             aStatus + "; 'gradwire nodes' shows the nodes",
	"summary":         aStatus,
	"get":             allSubmissions + ", 'gradwire nodes' the nodes; 'gradwire fetch' copies a record",
	"get nodes":       allNodes,
	"get pods":        allActors,
	"get jobs":        allSubmissions,
	"describe":        aStatus + "; 'gradwire plan show' spells a plan out, 'gradwire list' what it can name",
	"describe node":   allNodes,
	"explain":         "'gradwire list KIND NAME' says what each setting means",
	"dashboard":       aPage + "; 'gradwire status' says how far submissions are",
	"plot":            aPage,
	"timeline":        aPage,
	"log":             someLogs,
	"delete":          aRemoval + ", 'gradwire stop' ends one",
	"rm":              aRemoval,
	"kill":            anEnd,
	"cancel":          anEnd,
	"down":            "Ctrl-C ends what 'gradwire up' and 'gradwire node' started; 'gradwire stop' ends a submission",
	"serve":           "'gradwire node' is a process of a cluster that runs what is submitted",
	"server":          aCluster + "; in a plan a server is a node with the role server",
	"superlink":       aCluster,
	"supernode":       aCluster,
	"agent":           aCluster,
	"worker":          aCluster + "; in a plan a worker is a node with the role worker",
	"cluster":         aCluster,
	"cluster-info":    allNodes,
	"exec":            "'gradwire submit' runs a plan on a cluster, 'gradwire run' on this machine",
	"train":           "'gradwire run' trains by a plan; " + aPlan,
	"simulate":        "'gradwire run' runs a plan in virtual time",
	"simulation":      "'gradwire run' runs a plan in virtual time",
	"check":           "'gradwire plan check' says what is wrong with a plan",
	"validate":        "'gradwire plan check' says what is wrong with a plan",
	"lint":            "'gradwire plan check' says what is wrong with a plan",
	"show":            "'gradwire plan show' spells a plan out, 'gradwire report' makes a page of a record",
	"compare":         "'gradwire diff' compares records, 'gradwire report' puts several on a page",
	"download":        "'gradwire data get' gets a data set, 'gradwire fetch' copies a record from a cluster",
	"cp":              "'gradwire fetch' copies a record from a cluster",
	"login":           anIdentity,
	"cert":            anIdentity,
	"config":          anIdentity + "; GRADWIRE_JOIN and GRADWIRE_IDENTITY say which cluster and who asks",
	"version":         "'gradwire --version' says which build this is",
	"list nodes":      allNodes,
	"list jobs":       allSubmissions,
	"list runs":       allSubmissions,
	"list data":       "'gradwire list datasets' lists data sets, 'gradwire data list' those that can be got",
	"plan init":       aPlan,
	"plan create":     aPlan,
	"plan validate":   "'gradwire plan check' says what is wrong with a plan",
	"plan lint":       "'gradwire plan check' says what is wrong with a plan",
	"data download":   "'gradwire data get' gets a data set",
	"data fetch":      "'gradwire data get' gets a data set",
	"identity create": anIdentity,
	"identity new":    anIdentity,
}

// What several hints say.
const (
	aCluster       = "'gradwire up' starts a cluster on this machine, 'gradwire node' one process of a cluster"
	aPlan          = "'gradwire plan new' writes a plan to begin with"
	aSubmission    = "'gradwire submit' runs a plan on a cluster"
	allSubmissions = "'gradwire submissions' lists what was submitted"
	allNodes       = "'gradwire nodes' lists the nodes of a cluster"
	allActors      = "'gradwire actors' lists the actors outside of runs"
	aStatus        = "'gradwire status' says how far a submission is"
	someLogs       = "'gradwire logs' shows the log of a submission"
	anEnd          = "'gradwire stop' ends a submission"
	aRemoval       = "'gradwire remove' removes submissions that have ended"
	aPage          = "'gradwire report' makes a page of records"
	anIdentity     = "'gradwire identity init' makes the authority of a cluster, 'gradwire identity issue' certificates"
)
