package rt

import "golang.org/x/sys/unix"

// lower gives the calling thread a priority below mailboxes and timers; evaluations come below
// steps. A refusal of the kernel changes nothing.
func lower(class Class) {
	if class == Evaluations {
		_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0)
		return
	}
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), 19)
}
