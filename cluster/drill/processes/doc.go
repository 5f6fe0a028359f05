// Package processes tests clusters of real processes under random, seeded fault programmes.
//
// The package has only test code. TestProgramme draws a cluster, plans and faults from each seed:
//
//	go test ./cluster/drill/processes -run TestProgramme -programme.seed 7 -v
//	go test ./cluster/drill/processes -run TestProgramme -programme.seeds 1000 -programme.minutes 30
package processes
