//go:build !linux

package rt

// lower does nothing: the priority of one thread cannot be changed here.
func lower(Class) {}
