package shell

// handling is what exec does with a signal.
type handling int

const (
	// leaves: its effect on this process is that of any program in Go.
	leaves handling = iota
	// ends: the command and everything that it started get it, and the lock is
	// released once they have ended. Ends the wait for the lock.
	ends
	// passes: the command gets it, with its group if that is its own. Ends the
	// wait for the lock.
	passes
	// informs is like passes, and does not end the wait.
	informs
	// stops: the command, everything that it started and this process stop.
	stops
	// continues: they go on, or end if the lease has ended meanwhile.
	continues
	// ignores: nothing happens.
	ignores
)
