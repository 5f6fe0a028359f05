package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gradwire/gradwire/cluster/catalog"
	"github.com/gradwire/gradwire/cluster/driver"
	"github.com/gradwire/gradwire/cluster/identity"
)

// nodeFlags are the flags of gradwire node.
type nodeFlags struct {
	config   driver.NodeConfig
	identity string
	join     string
	patience time.Duration
	labels   []string
	leash    bool
}

const timeoutUsage = "silence after which another node counts as absent and others take its place; 2s or more"

// readyLine begins the line with which a node says that it is part of the cluster.
const readyLine = "ready at "

func nodeCommand(c *catalog.Catalog, con *console) *cobra.Command {
	f := &nodeFlags{}
	cmd := &cobra.Command{
		Use:   "node",
		Short: "Be a node of a cluster",
		Long: `Be a node of a cluster: a process that hosts nodes of the plans that are submitted to it or to
others. The first node begins the cluster, any other joins it through the address of one that is in it.
One port number is needed, for TCP and UDP. After Ctrl-C or SIGTERM the node says goodbye and leaves,
within 20 s in any case; after SIGHUP it reads its identity again. The log warns from 30 days before
the identity expires; when it has expired, the node leaves.`,
		Example: `  gradwire node --bind 10.0.0.1:7946 --identity a/
  gradwire node --bind 10.0.0.2:7946 --identity b/ --join 10.0.0.1:7946 --data ~/datasets
  gradwire node --bind 10.0.0.3:7946 --identity c/ --join 10.0.0.1:7946 --out s3://bucket/records`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd, c, con) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.config.Name, "name", "", "name of the node (default: the name in its certificate)")
	flags.StringVar(&f.config.Bind, "bind", "127.0.0.1:7946", "address to listen at")
	flags.StringVar(&f.config.Advertise, "advertise", "",
		"address at which others reach the node (default: the address of --bind)")
	flags.StringVar(&f.join, "join", "", "addresses of nodes of the cluster, with commas between them "+
		"(default: $GRADWIRE_JOIN; none begins a cluster)")
	flags.DurationVar(&f.patience, "join-timeout", 0,
		"how long to try --join, while nobody answers there or a name is unknown (default: until Ctrl-C)")
	flags.DurationVar(&f.config.NodeTimeout, "node-timeout", driver.DefaultNodeTimeout, timeoutUsage)
	flags.StringVar(&f.identity, "identity", "", "folder of the node's identity (default: $GRADWIRE_IDENTITY)")
	flags.BoolVar(&f.config.Insecure, "insecure", false,
		"no certificates and no encryption; on loopback addresses only")
	flags.BoolVar(&f.config.SocketsOnly, "sockets-only", false,
		"no memory shared with nodes of the same user on this machine, but sockets, as to others")
	flags.StringVar(&f.config.Data, "data", "", folderUsage)
	flags.StringVar(&f.config.Out, "out", "",
		"folder of the submissions' records, or s3://BUCKET/PATH, to which the node adds its name (default: results)")
	flags.StringVar(&f.config.Role, "role", "", "host nodes of this role alone, unless a placement names the node")
	flags.StringArrayVar(&f.labels, "label", nil, "a label that placements can ask for, as in zone=eu (repeated)")
	flags.IntVar(&f.config.Cores, "cores", 0, "steps that compute at a time (default: all cores)")
	flags.BoolVar(&f.leash, "leash", false, "end when standard input does")
	_ = flags.MarkHidden("leash") // for gradwire up
	return cmd
}

func (f *nodeFlags) run(cmd *cobra.Command, c *catalog.Catalog, con *console) (err error) {
	o := &f.config
	o.Catalog = c
	o.Data = cmp.Or(o.Data, os.Getenv("GRADWIRE_DATA"))
	o.Seeds = seeds(f.join)
	if o.JoinTimeout = f.patience; f.patience <= 0 {
		o.JoinTimeout = -1
	}
	if o.Labels, err = labels(f.labels); err != nil {
		return usage(cmd, err)
	}
	if o.Cores < 0 {
		return usage(cmd, fmt.Errorf("--cores %d; accepted is 0, for all cores, and more", o.Cores))
	}
	if err := driver.CheckNodeTimeout(o.NodeTimeout); err != nil {
		return usage(cmd, err)
	}
	if o.Identity, err = loadIdentity(f.identity, o.Insecure, nodesIdentity); err != nil {
		return err
	}
	o.Ready = func(address string) {
		if err := con.say(facts{"ready": address}, "%s%s\n", readyLine, address); err != nil {
			o.Log(err.Error())
		}
	}
	o.Log = func(line string) {
		fmt.Fprintf(con.errs, "%s %s\n", time.Now().Format("2006-01-02T15:04:05.000Z07:00"), line)
	}
	f.tellSources()
	ctx := cmd.Context()
	if o.Identity != nil {
		o.Renew = identity.Renewals(ctx, cmp.Or(f.identity, os.Getenv("GRADWIRE_IDENTITY")), o.Log)
	}
	if f.leash {
		var cancel func()
		ctx, cancel = leashed(ctx, os.Stdin)
		defer cancel()
	}
	con.leaves.Store(true)
	return driver.Serve(ctx, *o)
}

// tellSources has the log say what comes from the environment: a variable that was exported for
// another program may be meant for that one alone.
func (f *nodeFlags) tellSources() {
	o := &f.config
	switch {
	case f.join != "":
		o.Log("joins " + strings.Join(o.Seeds, ", "))
	case len(o.Seeds) > 0:
		o.Log("joins " + strings.Join(o.Seeds, ", ") + " (from GRADWIRE_JOIN)")
	default:
		o.Log("begins a cluster")
	}
	if f.identity == "" && o.Identity != nil {
		o.Log("identity in " + os.Getenv("GRADWIRE_IDENTITY") + " (from GRADWIRE_IDENTITY)")
	}
	if folder := os.Getenv("GRADWIRE_DATA"); folder != "" && o.Data == folder {
		o.Log("data in " + folder + " (from GRADWIRE_DATA)")
	}
}

// seeds splits addresses, by default the environment's.
func seeds(join string) (all []string) {
	for s := range strings.SplitSeq(cmp.Or(join, os.Getenv("GRADWIRE_JOIN")), ",") {
		if s = strings.TrimSpace(s); s != "" {
			all = append(all, s)
		}
	}
	return all
}

// How one comes by an identity.
const (
	nodesIdentity = `; two commands make one:
  gradwire identity init ca/
  gradwire identity issue ca/ --node NAME
--insecure does without, on loopback addresses`
	usersIdentity = `; where the cluster's authority is, this makes one:
  gradwire identity issue ca/ --operator
and 'gradwire up' says where it has put one`
)

// loadIdentity loads an identity, by default the environment's; nil if there is to be none. The
// error where none is given ends in how to come by one.
func loadIdentity(dir string, insecure bool, how string) (*identity.Identity, error) {
	if insecure && dir == "" {
		return nil, nil
	}
	if dir = cmp.Or(dir, os.Getenv("GRADWIRE_IDENTITY")); dir == "" {
		return nil, &driver.InputError{Err: errors.New(
			"no identity is given, as --identity or GRADWIRE_IDENTITY does" + how)}
	}
	id, err := identity.Load(dir)
	if err != nil && dir == os.Getenv("GRADWIRE_IDENTITY") {
		err = fmt.Errorf("%w (from GRADWIRE_IDENTITY)", err)
	}
	if err != nil {
		return nil, &driver.InputError{Err: err}
	}
	return id, nil
}

func labels(texts []string) (map[string]string, error) {
	all := map[string]string{}
	for _, text := range texts {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("--label %q; accepted is KEY=VALUE", text)
		}
		all[key] = value
	}
	return all, nil
}
