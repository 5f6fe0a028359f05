// Package world holds what a world offers to the actors of a run in any kind of time: who takes
// part and how fast each node computes, how nodes come and go, which views follow, and what a
// standstill reports. Both the virtual world and the world in real time build on it.
package world
