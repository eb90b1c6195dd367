//go:build unix

package integration_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

const (
	killed = 5 // processes before their effects, and as many after them
	// patience is how long an event is delivered again after its handler was killed
	// or stopped.
	patience = 3 * crashLease
	// silence is when a delivery that says nothing counts as one that waits.
	silence = 2 * time.Second
)

// player plays the cases with a way to use a tool.
type player struct {
	t    *testing.T
	peer *peer
}

// actor is a process of the player.
type actor struct {
	*process
	t     *testing.T
	lines chan peerAnswer
}

// start starts a process whose leases are that long. It is killed at the end of
// the test, or when end is called.
func (p player) start(lease time.Duration) (a *actor, end func()) {
	p.t.Helper()
	peer := *p.peer
	peer.lease = lease
	a = &actor{peer.launch(p.t), p.t, make(chan peerAnswer, 8)}
	go func() {
		defer close(a.lines)
		for {
			var l peerAnswer
			if a.process.lines.Decode(&l) != nil {
				return
			}
			a.lines <- l
		}
	}()
	return a, func() {
		expect.Must(p.t, a.cmd.Process.Kill())
		_ = a.cmd.Wait() // it was killed
	}
}

// newEvent is an event of a resource of its own.
func newEvent() caseEvent { return caseEvent{Name: rand.Text(), Event: rand.Text(), Payload: "1"} }

func (a *actor) deliver(e caseEvent) { a.say(string(expect.Value(json.Marshal(e))(a.t))) }

func (a *actor) say(line string) {
	a.t.Helper()
	if _, err := fmt.Fprintln(a.stdin, line); err != nil {
		a.t.Fatal(err)
	}
}

// within returns the next line of the process, if one comes so soon.
func (a *actor) within(limit time.Duration) (l peerAnswer, ok bool) {
	a.t.Helper()
	select {
	case l, ok = <-a.lines:
		if !ok {
			a.t.Fatalf("%s: the process ended", a.name)
		}
	case <-time.After(limit):
	}
	return l, ok
}

func (a *actor) next() peerAnswer {
	a.t.Helper()
	l, ok := a.within(time.Minute)
	if !ok {
		a.t.Fatalf("%s: no line in a minute", a.name)
	}
	return l
}

// begin delivers an event whose handler has to begin.
func (a *actor) begin(e caseEvent) peerAnswer {
	a.t.Helper()
	a.deliver(e)
	l := a.next()
	if l.Over {
		a.t.Fatalf("%s: the handler did not begin: %s", a.name, l.Failed)
	}
	return l
}

// finish lets the handler that waits end like that.
func (a *actor) finish(how string) peerAnswer {
	a.t.Helper()
	a.say(how)
	l := a.next()
	if !l.Over {
		a.t.Fatalf("%s: a second handler began", a.name)
	}
	return l
}

// second delivers a copy of an event, which change makes another one, when the
// handler of the first has ended, or at once, while it is at work.
func (p player) second(atOnce bool, change func(first, second *caseEvent)) string {
	a, endA := p.start(time.Minute)
	defer endA()
	b, endB := p.start(time.Minute)
	defer endB()
	first := newEvent()
	second := first
	change(&first, &second)
	a.begin(first)
	answer, limit := peerAnswer{Result: "none yet"}, silence
	if !atOnce {
		if answer, limit = a.finish("go"), time.Minute; answer.Failed != "" {
			p.t.Fatalf("%s: the first event failed: %s", a.name, answer.Failed)
		}
	}
	b.deliver(second)
	l, ok := b.within(limit)
	switch {
	case !ok:
		return "waits"
	case !l.Over && atOnce:
		return "at the same time"
	case !l.Over:
		return "runs"
	case l.Failed != "":
		p.t.Log(l.Failed)
		return "fails"
	case l.Result == answer.Result:
		return "the first answer"
	}
	return "skipped"
}

// fence says whether the second event of a resource gets a higher number.
func (p player) fence() string {
	a, end := p.start(time.Minute)
	defer end()
	first, second := newEvent(), newEvent()
	second.Name = first.Name
	one := a.begin(first).Fence
	a.finish("go")
	if two := a.begin(second).Fence; 0 < one && one < two {
		return "yes"
	}
	return "no"
}

// late stops a process in its handler until another one has taken over, lets
// its handler end like that, and delivers the event a third time.
func (p player) late(how string) string {
	a, endA := p.start(crashLease)
	defer endA()
	b, endB := p.start(crashLease)
	defer endB()
	c, endC := p.start(crashLease)
	defer endC()
	e := newEvent()
	a.begin(e)
	expect.Must(p.t, a.cmd.Process.Signal(syscall.SIGSTOP))
	e.Patience = patience.Milliseconds()
	b.deliver(e)
	e.Patience = 0
	successor := b.next()
	if successor.Over {
		return "no takeover"
	}
	expect.Must(p.t, a.cmd.Process.Signal(syscall.SIGCONT))
	own := a.finish(how)
	c.deliver(e)
	third, ok := c.within(silence)
	switch took := third.Asked - successor.Began; {
	case ok && took > float64(crashLease.Milliseconds())*3/4:
		p.t.Fatalf("%s: too slow: the third delivery was %.0f ms after the second", a.name, took)
	case ok && !third.Over:
		return "deletes"
	case ok && third.Failed == "" && third.Result == own.Result:
		return "overwrites"
	}
	return "changes nothing"
}

// lateHolder lets the late handler succeed, and fail.
func (p player) lateHolder() string {
	success, failure := p.late("go"), p.late("fail")
	if success == failure {
		return success
	}
	return fmt.Sprintf("%s its successor's record, or %s it", success, failure)
}

// kills are what became of events whose processes were killed.
type kills struct {
	begun, effects int
	then           string  // what the last delivery of the last one came to
	asked, began   float64 // of its first delivery, and when its last handler began
}

// kill kills so many processes in their handlers, before or after their
// effects, which are outside: here. Then it delivers their events until they
// succeed or patience ends, the first time so long after the lease; or without
// a pause, if that is negative.
func (p player) kill(n int, afterEffect bool, pause time.Duration) (k kills) {
	b, end := p.start(crashLease)
	defer end()
	for range n {
		a, end := p.start(crashLease)
		e := newEvent()
		first := a.begin(e)
		effect := afterEffect
		k.begun++
		end()
		k.asked = first.Asked
		if pause >= 0 {
			until := first.Asked + float64((crashLease + pause).Milliseconds())
			_ = delayFor(p.t.Context(), time.Duration(max(0, until-moment())*1e6))
			k.asked = moment()
		}
		if afterEffect {
			k.effects++
		}
		e.Patience = patience.Milliseconds()
		b.deliver(e)
		l := b.next()
		for ; !l.Over; l = b.next() {
			switch {
			case !l.Asks:
				k.begun++
				k.effects++
				effect, k.began = true, l.Began
				b.say("go")
			case effect:
				b.say("done")
			default:
				b.say("no")
			}
		}
		k.then = "acknowledged"
		if l.Failed != "" {
			k.then = "fails"
		}
	}
	return k
}

// killedHolder says when an event runs again whose handler was killed: at, of
// an event that is delivered at once.
func (p player) killedHolder(at kills) string {
	waited := time.Duration((at.began - at.asked) * 1e6)
	late := p.kill(1, false, 500*time.Millisecond)
	switch {
	case at.began == 0:
		return "never runs again"
	case waited < crashLease/2:
		return "runs again at once"
	case late.began-late.asked < float64(crashLease.Milliseconds())/2:
		return "runs again after its lease"
	}
	return "runs again a lease after its delivery"
}
