package client_test

import (
	"strings"
	"testing"

	"github.com/gradwire/gradwire/cluster/client"
)

func TestProcessesOfDifferentBuildsAreNamed(t *testing.T) {
	for _, builds := range []map[string]string{nil, {"a": "v1"}, {"a": "v1", "b": "v1"}, {"a": "", "b": ""}} {
		if text := client.DifferentBuilds(builds); text != "" {
			t.Errorf("%v: %s", builds, text)
		}
	}
	text := client.DifferentBuilds(map[string]string{"c": "v1", "a": "v1", "b": "v2", "d": ""})
	if !strings.HasSuffix(text, ": d (an unknown build); a, c (v1); b (v2)") || strings.Contains(text, "\n") {
		t.Error(text)
	}
}
