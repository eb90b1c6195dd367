package locallambda

// event is one step in the life of an environment. Tests observe them.
type event struct {
	kind        string // one of the constants below, or an Outcome
	environment int    // its number, from 1
	pid         int    // of the process
	requestID   string // of the invocation; empty: none
	detail      string // the error message, or how the process ended; empty: none
}

const (
	eventStarted = "started" // a process was started
	eventInvoked = "invoked" // an invocation was delivered
	eventFrozen  = "frozen"  // the process group was stopped for lack of work
	eventThawed  = "thawed"  // it goes on
	eventStopped = "stopped" // the process is gone
)

// note reports an event to the observer. The caller holds p.mu.
func (p *Platform) note(proc *process, kind, requestID, detail string) {
	if p.cfg.observe != nil {
		p.cfg.observe(event{kind, proc.env.number, proc.pid, requestID, detail})
	}
}
