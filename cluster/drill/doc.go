// Package drill runs a plan with its faults and without them, in virtual time, says what each fault
// cost, and which invariants held.
//
// [Run] is the command gradwire drill. [Make] is the same for one point and seed, for programmes of
// many; see package programme. Each [Invariant] is a value with a name; [Check] checks all of them.
// They are NoPanic, DigestRepeats, MessagesConserved, HandledOnce, DeadLetters, ClocksMonotone,
// VersionsMonotone, GoneAreSilent, StalenessBound, Progress, ModelsFinite, RanksEqual,
// StepsCounted, ResumeRepeats, DamageRefused, AveragesBetween, SumsPreserved, UpdatesOnce and
// NothingLeft.
package drill
