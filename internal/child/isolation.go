package child

// Isolation is the mechanism that ends the descendants of a program together
// with it.
type Isolation string

// The ways, best first. A [Launcher] takes the first that the system allows.
const (
	// Namespace is a PID namespace: the kernel itself ends all of it with
	// its first process, which dies with this one.
	Namespace Isolation = "namespace"

	// Subreaper is a small parent process that inherits every orphan below
	// it and, when this process dies, kills until nothing is left.
	Subreaper Isolation = "subreaper"

	// Job is a Windows job object that ends its processes when the last
	// handle to it closes.
	Job Isolation = "job"

	// Group is a process group. It is ended with the program and by a stop;
	// after kill -9 of this process only what watches its stdin, and on Linux
	// the program itself, goes. What left the group stays.
	Group Isolation = "group"
)
