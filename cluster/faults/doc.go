// Package faults carries out what a plan says of faults, beyond what a link or a world does by
// itself.
//
// [Schedule] draws the section faults: of a plan and writes what it has drawn as changes of the
// plan's schedule, so that worlds know only schedules. [Over] lays the cuts of a schedule over
// what links are like. [Undisturbed] is the plan without what hurts it, and a [Tally] counts the
// samples of a run that count: goodput is their number divided by that of the undisturbed run.
// [Once] has the updates that a crash makes happen again counted once.
package faults
