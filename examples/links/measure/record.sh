#!/bin/bash
# Records examples/links/bottleneck.csv: the way between two network namespaces, joined by a virtual cable that a token bucket
# filter holds to 2 Mbit/s, with a queue of up to 400 ms, while TCP transfers of 1 to 7 s come and go. Needs root, ip and tc.
set -eu
measure=$1
ip netns add gwa
ip netns add gwb
trap 'kill $(jobs -p) 2>/dev/null; ip netns del gwa; ip netns del gwb' EXIT
ip link add va netns gwa type veth peer name vb netns gwb
ip -n gwa addr add 10.99.0.1/24 dev va
ip -n gwb addr add 10.99.0.2/24 dev vb
ip -n gwa link set va up
ip -n gwb link set vb up
ip netns exec gwa tc qdisc add dev va root tbf rate 2mbit burst 4kb latency 400ms
ip netns exec gwb "$measure" -serve :9000 &
sleep 1
load() {
	for seconds in 2 5 1 7 3 4 1 6; do
		sleep "$((8 - seconds))"
		timeout "$seconds" bash -c 'cat /dev/zero > /dev/tcp/10.99.0.2/9000' || true
	done
}
export -f load
ip netns exec gwa bash -c load &
ip netns exec gwa "$measure" -to 10.99.0.2:9000 -every 150ms -for 66s
