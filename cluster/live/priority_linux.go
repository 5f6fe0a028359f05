package live

import "golang.org/x/sys/unix"

// lower lets the calling thread compute only when no mailbox or timer wants a
// core; evaluations give way even to steps. Where the system refuses, it goes on
// as it is.
func lower(class class) {
	if class == evaluations {
		_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0)
		return
	}
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), 19)
}
