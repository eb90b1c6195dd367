// Package fault makes requests fail as networks and servers make them fail. It
// is the one vocabulary of faults for all tests: [Store] is the layer below a
// locker, [Transport] the one below an HTTP client, [Exchange] the one below
// any other client, and [Proxy] stands between another process and a real
// server.
//
// What becomes of a request is decided by a [Plan]. That of a [Mix] depends
// only on its seed, the client and the number of the request, so that a
// history can be played again.
package fault

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/schedule"
)

// Fault is what becomes of one request.
type Fault int

// The faults. The names of those with two parts say what happens first. A
// request that hangs gets no answer until its sender gives up.
const (
	None          Fault = iota // applied and answered
	DropBefore                 // the connection breaks before the request is applied
	ApplyThenDrop              // applied, and the connection breaks before the answer
	ApplyThenFail              // applied, and answered with a server's error
	Truncate                   // applied, and the answer ends in the middle
	DelayBefore                // applied and answered after the delay
	DelayAfter                 // applied immediately, and answered after the delay
	Duplicate                  // applied and answered, and applied once more after the delay
	Throttle                   // rejected: the store is asked for more than it takes
	Conflict                   // rejected: another write of the row is under way
	Deny                       // rejected, as every later request would be
	Fail                       // not applied, and answered with a server's error
	Hang                       // not applied, and never answered
	ApplyThenHang              // applied, and never answered
	HangThenApply              // never answered, and applied after the delay
	DropThenApply              // the connection breaks, and the request is applied after the delay
	faults
)

var texts = [faults]string{
	"none", "drop before", "apply then drop", "apply then fail", "truncate", "delay before", "delay after", "duplicate",
	"throttle", "conflict", "deny", "fail", "hang", "apply then hang", "hang then apply", "drop then apply",
}

func (f Fault) String() string {
	if f < 0 || f >= faults {
		return fmt.Sprintf("Fault(%d)", int(f))
	}
	return texts[f]
}

// Applied reports whether the request is applied before its sender gives up.
func (f Fault) Applied() bool {
	switch f {
	case DropBefore, Throttle, Conflict, Deny, Fail, Hang, HangThenApply, DropThenApply:
		return false
	}
	return true
}

// Decision is what becomes of one request, and when.
type Decision struct {
	Fault Fault
	// Delay is that of DelayBefore and DelayAfter, or the time after which a copy
	// is applied.
	Delay time.Duration
}

// Plan decides what becomes of each request of one client. The layers ask it
// in the order in which the requests are sent.
type Plan interface {
	Next(op string) Decision
}

// Telling is a [Plan] that tells requests apart which a client sends at the
// same time, however they arrive: by what is known of them beside the op.
type Telling interface {
	NextOf(op, request string) Decision
}

func nextOf(p Plan, op, request string) Decision {
	if t, ok := p.(Telling); ok {
		return t.NextOf(op, op+" "+request)
	}
	return p.Next(op)
}

// Mix is how often each fault happens in a history.
type Mix struct {
	Seed uint64
	// PerMille is how many of a thousand requests meet each fault.
	PerMille map[Fault]int
	// Delay is the longest of DelayBefore and DelayAfter, Late that of a copy.
	Delay, Late time.Duration
}

// Latest is when the last copy of a request arrives, with a [Usual] mix.
const Latest = 30 * time.Second

// Usual returns a mix in which so many of a thousand requests meet a fault,
// each of those that a later try may overcome as often as the others.
func Usual(seed uint64, perMille int) Mix {
	usual := []Fault{
		DropBefore, ApplyThenDrop, ApplyThenFail, Truncate, DelayBefore, DelayAfter, Duplicate, Throttle, Conflict, Fail,
		Hang, ApplyThenHang, HangThenApply, DropThenApply,
	}
	m := Mix{Seed: seed, PerMille: map[Fault]int{}, Delay: 3 * time.Second, Late: Latest}
	for i, f := range usual {
		m.PerMille[f] = perMille*(i+1)/len(usual) - perMille*i/len(usual)
	}
	return m
}

// Client returns the plan of one client.
func (m Mix) Client(id uint64) *Stream {
	return &Stream{mix: m, client: id, random: rand.New(rand.NewPCG(m.Seed, id))}
}

// Stream is the plan of one client of a [Mix]. It is safe for concurrent use.
type Stream struct {
	// Turns, if not nil, gives each request a turn of its own.
	Turns *schedule.Scheduler

	mix    Mix
	client uint64
	mu     sync.Mutex
	random *rand.Rand
	healed bool
	met    [faults]int
}

// Next implements [Plan].
func (s *Stream) Next(op string) Decision { return s.NextOf(op, op) }

// NextOf implements [Telling].
func (s *Stream) NextOf(_, request string) Decision {
	s.Turns.Wait(schedule.Point{Process: s.client, What: "request " + request})
	s.mu.Lock()
	defer s.mu.Unlock()
	dice, part := s.random.IntN(1000), s.random.Float64()
	d := Decision{Fault: s.fault(dice)}
	switch d.Fault {
	case DelayBefore, DelayAfter:
		d.Delay = time.Duration(part * float64(s.mix.Delay))
	case Duplicate, HangThenApply, DropThenApply:
		d.Delay = time.Duration(part * float64(s.mix.Late))
	}
	s.met[d.Fault]++
	return d
}

func (s *Stream) fault(dice int) Fault {
	if s.healed {
		return None
	}
	for f := None + 1; f < faults; f++ {
		if dice -= s.mix.PerMille[f]; dice < 0 {
			return f
		}
	}
	return None
}

// Heal ends the faults: from now on every request is applied and answered.
func (s *Stream) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.healed = true
}

// Met returns how many requests met each fault so far.
func (s *Stream) Met() map[Fault]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	met := map[Fault]int{}
	for f, n := range s.met {
		if n > 0 {
			met[Fault(f)] = n
		}
	}
	return met
}

// Script is a plan that is written down. Its zero value lets every request
// through. It is safe for concurrent use.
type Script struct {
	mu      sync.Mutex
	planned map[string][]Fault
	always  map[string]Fault
	count   map[string]int
}

// Plan sets the faults of the next requests of op, in order. It replaces an
// earlier plan.
func (s *Script) Plan(op string, faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.planned == nil {
		s.planned = map[string][]Fault{}
	}
	s.planned[op] = faults
}

// Always sets the fault of every request of op that has no planned one.
func (s *Script) Always(op string, f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.always == nil {
		s.always = map[string]Fault{}
	}
	s.always[op] = f
}

// Requests returns how many requests of op were made.
func (s *Script) Requests(op string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count[op]
}

// Next implements [Plan]. The delays of a script are zero.
func (s *Script) Next(op string) Decision {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count == nil {
		s.count = map[string]int{}
	}
	s.count[op]++
	if p := s.planned[op]; len(p) > 0 {
		s.planned[op] = p[1:]
		return Decision{Fault: p[0]}
	}
	return Decision{Fault: s.always[op]}
}
