package locallambda

// eventKind says what happened to an environment or an invocation.
type eventKind string

const (
	eventStarted  eventKind = "started"   // a process was started
	eventInvoked  eventKind = "invoked"   // an invocation was delivered
	eventFinished eventKind = "finished"  // its response is complete
	eventFailed   eventKind = "failed"    // it ended with a function error
	eventTimedOut eventKind = "timed out" // it passed its deadline
	eventCrashed  eventKind = "crashed"   // the process ended unasked, during an invocation or without one
	eventFrozen   eventKind = "frozen"    // the process group was stopped for lack of work
	eventThawed   eventKind = "thawed"    // it goes on
	eventStopped  eventKind = "stopped"   // the process is gone
)

var eventOf = map[Outcome]eventKind{
	Succeeded: eventFinished, Failed: eventFailed, TimedOut: eventTimedOut, Crashed: eventCrashed,
}

// event is one step in the life of an environment.
type event struct {
	kind        eventKind
	environment int    // its number, from 1
	pid         int    // of the process
	requestID   string // of the invocation; empty: none
	detail      string // the error message, or how the process ended; empty: none
}

// note reports an event to the observer. The caller holds p.mu.
func (p *Platform) note(proc *process, kind eventKind, id, detail string) {
	if p.cfg.observe != nil {
		p.cfg.observe(event{kind, proc.env.number, proc.pid, id, detail})
	}
}
