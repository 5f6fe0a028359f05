package client

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
)

// DifferentBuilds names the build of each process in one line; it is empty if all run the same build.
func DifferentBuilds(builds map[string]string) string {
	of := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(builds)) {
		of[builds[name]] = append(of[builds[name]], name)
	}
	if len(of) < 2 {
		return ""
	}
	var all []string
	for _, build := range slices.Sorted(maps.Keys(of)) {
		all = append(all, strings.Join(of[build], ", ")+" ("+cmp.Or(build, "an unknown build")+")")
	}
	return "builds differ: " + strings.Join(all, "; ")
}

// Builds maps the processes of some nodes to their builds.
func Builds(nodes []Node) map[string]string {
	builds := map[string]string{}
	for i := range nodes {
		builds[nodes[i].Name] = nodes[i].Build
	}
	return builds
}

// buildsOf returns the builds of the processes that take part in a running submission, or nil if they
// are equal.
func (c *Client) buildsOf(ctx context.Context, s *Submission) map[string]string {
	if s.Over() {
		return nil
	}
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return nil
	}
	builds := Builds(nodes)
	part := slices.Concat([]string{s.Process}, s.Holders, slices.Collect(maps.Values(s.Placement)))
	maps.DeleteFunc(builds, func(name, _ string) bool { return !slices.Contains(part, name) })
	if DifferentBuilds(builds) == "" {
		return nil
	}
	return builds
}
