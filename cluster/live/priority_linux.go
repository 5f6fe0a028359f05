package live

import "golang.org/x/sys/unix"

// lower lets the calling thread compute only when no mailbox or timer wants a
// core; evaluations give way even to steps. It reports whether the system agreed.
func lower(class class) bool {
	if class == evaluations {
		return unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0) == nil
	}
	return unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), 19) == nil
}
