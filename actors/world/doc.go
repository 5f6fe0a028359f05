// Package world is what a world must offer to the actors of a run, whatever its time is: who takes
// part and how fast each node computes, how nodes come and go, which views follow, and what a
// standstill says. The virtual world and the one in real time are both made of it.
package world
