package integration_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// The model of a lock, written down a second time and without regard to how a
// store does it: an owner, a lease end, a stamp and a fence for each name. The
// times are those in the requests (microseconds), so it needs no clock. Where a
// server judges leases by its own clock, that clock is only known to have been
// between the call and the return of a request.

type modelOp int

const (
	opAcquire modelOp = iota
	opRelease
	opAbandon
	opRenew
	opSkip // a claim that was refused because its event is completed
)

type modelInput struct {
	op    modelOp
	name  string
	token string
	now   int64
	stamp int64
	until int64
	// completes is set if a settlement replaces what the row remembers.
	completes bool

	server       *serverClock // nil: leases are judged by the clocks of the clients
	call, answer int64        // nanoseconds; only with a server's clock
}

// serverClock is what is known of a clock that judges leases.
type serverClock struct {
	// late is how much longer than asked for a lease may last. Only stores of
	// objects count whole seconds.
	late time.Duration
}

// recognised returns the token if the store recognises the same settlement that
// comes again, as one of objects does.
func (c *serverClock) recognised(token string) string {
	if c == nil || c.late == 0 {
		return ""
	}
	return token
}

// forever is the answer of a request that may be applied at any later time.
const forever = math.MaxInt64

// modelOutput is what the store answered. Unknown: the answer was lost.
type modelOutput struct {
	unknown bool
	applied bool
	owner   string // afterwards, or who refused
	fence   int64
}

type modelState struct {
	owner        string
	until, stamp int64
	fence        int64 // zero: there is none, or it is not known
	// earliest and latest are when the lease ends by the server's clock.
	earliest, latest int64
	// writer is whose settlement was written last, if nobody has written since, and
	// completer whose replaced the memory last; only for stores of objects.
	writer, completer string
}

// lockModel has several next states where an answer was lost: the request was
// applied, or it was not.
var lockModel = porcupine.NondeterministicModel{
	Partition: partitionByName,
	Init:      func() []any { return []any{modelState{}} },
	Step: func(state, input, output any) []any {
		s, in, out := state.(modelState), input.(modelInput), output.(modelOutput)
		return s.follow(in, out)
	},
	Equal:             func(a, b any) bool { return a == b },
	DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v -> %+v", in, out) },
}

// follow returns the states that a request and its answer allow.
func (s modelState) follow(in modelInput, out modelOutput) []any {
	var next []any
	for _, free := range s.free(in) {
		after, applied := s.apply(in, free)
		if out.unknown {
			next = append(next, after)
			continue
		}
		if after.fence == 0 && after.owner != "" {
			after.fence = out.fence // by the server's clock
		}
		if applied == out.applied && after.owner == out.owner && (in.op != opAcquire || out.owner == "" || after.fence == out.fence && (after.fence > s.fence || after.fence == s.fence && s.owner == after.owner)) {
			next = append(next, after)
		}
	}
	if !out.unknown && out.applied && s.finds(in, out) {
		next = append(next, s)
	}
	if out.unknown {
		next = append(next, s)
		if in.op == opAbandon { // some stores take two steps
			s.stamp = max(s.stamp, in.stamp)
			next = append(next, s)
		}
	}
	return next
}

// finds reports whether a store finds what this settlement, sent before, has
// written, or the same settlement of another claim with that stamp. The next
// owner keeps what a completion remembers.
func (s modelState) finds(in modelInput, out modelOutput) bool {
	same := s.writer == in.token || in.op == opAbandon && s.stamp == in.stamp
	wrote := s.writer != "" && same && s.owner == out.owner
	completed := in.completes && s.completer != "" && s.completer == in.token && out.owner == ""
	return wrote || completed
}

// free returns whether nobody holds the name; both if the clock is not known
// well enough.
func (s modelState) free(in modelInput) []bool {
	switch {
	case s.owner == "":
		return []bool{true}
	case in.server == nil:
		return []bool{s.until < in.now}
	}
	var free []bool
	if in.answer > s.earliest {
		free = append(free, true)
	}
	if in.call <= s.latest {
		free = append(free, false)
	}
	return free
}

// apply is the state after a request, and whether the request was granted.
func (s modelState) apply(in modelInput, free bool) (modelState, bool) {
	mine := s.owner == in.token
	later := s.stamp < in.stamp
	switch in.op {
	case opAcquire:
		again := mine && s.until <= in.until && s.stamp <= in.stamp
		if !(free && later) && !again {
			return s, false
		}
		if in.server != nil && again && s.until == in.until && s.stamp == in.stamp { // a copy
			return s, true
		}
		next := modelState{owner: in.token, until: in.until, stamp: in.stamp, completer: s.completer}
		if in.server == nil {
			next.fence = in.stamp
		}
		return next.lasting(in, s), true
	case opRenew:
		over := in.server != nil && free // the lease of a dead owner gets no longer
		if !mine || over || s.until > in.until {
			return s, false
		}
		if s.until == in.until { // a copy
			return s, true
		}
		next := s
		next.until, next.writer = in.until, ""
		return next.lasting(in, s), true
	case opAbandon:
		s.stamp = max(s.stamp, in.stamp)
		if mine {
			return s.freed(in), true
		}
		if later {
			s.writer = in.server.recognised(in.token)
		}
		return s, later
	case opSkip:
		return s, false
	}
	if mine {
		return s.freed(in), true
	}
	return s, false
}

// freed is the state after the owner's settlement.
func (s modelState) freed(in modelInput) modelState {
	next := modelState{stamp: s.stamp, fence: s.fence, writer: in.server.recognised(in.token), completer: s.completer}
	if in.completes {
		next.completer = next.writer
	}
	return next
}

// lasting sets the end of a lease by the server's clock. It never comes nearer.
func (s modelState) lasting(in modelInput, before modelState) modelState {
	if in.server == nil {
		return s
	}
	lease := (in.until - in.now) * int64(time.Microsecond)
	s.earliest, s.latest = in.call+lease, forever
	if in.answer < forever {
		s.latest = in.answer + lease + int64(in.server.late)
	}
	if before.owner == in.token {
		s.earliest, s.latest = max(s.earliest, before.earliest), max(s.latest, before.latest)
	}
	return s
}

func partitionByName(history []porcupine.Operation) [][]porcupine.Operation {
	byName := map[string][]porcupine.Operation{}
	for _, op := range history {
		name := op.Input.(modelInput).name
		byName[name] = append(byName[name], op)
	}
	parts := make([][]porcupine.Operation, 0, len(byName))
	for _, part := range byName {
		parts = append(parts, part)
	}
	return parts
}

// dispute describes where the first illegal part of a history cannot go on:
// what came last in its longest explanation, and what came next.
func dispute(history []porcupine.Operation) string {
	model := lockModel.ToModel()
	for _, part := range partitionByName(history) {
		_, info := porcupine.CheckOperationsVerbose(model, part, checkLimit)
		var longest []porcupine.Operation
		for _, p := range info.PartialLinearizationsOperations()[0] {
			if len(p) > len(longest) {
				longest = p
			}
		}
		if len(longest) == len(part) {
			continue
		}
		state, known := model.Init(), map[porcupine.Operation]bool{}
		for _, o := range longest {
			_, state = model.Step(state, o.Input, o.Output)
			known[o] = true
		}
		var b strings.Builder
		show := func(o porcupine.Operation) {
			fmt.Fprintf(&b, "  %d..%d %s\n", o.Call, o.Return, lockModel.DescribeOperation(o.Input, o.Output))
		}
		for _, o := range longest[max(0, len(longest)-6):] {
			show(o)
		}
		fmt.Fprintf(&b, "in state %v, then one of\n", state)
		slices.SortFunc(part, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
		for shown, i := 0, 0; i < len(part) && shown < 6; i++ {
			if !known[part[i]] {
				show(part[i])
				shown++
			}
		}
		return b.String()
	}
	return ""
}
