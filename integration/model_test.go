package integration_test

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// The model of a lock, written down a second time and without regard to how a
// store does it: an owner, a lease end, a stamp and a fence for each name. All
// times are those in the requests (microseconds), so it needs no clock.

type modelOp int

const (
	opAcquire modelOp = iota
	opRelease
	opAbandon
)

type modelInput struct {
	op    modelOp
	name  string
	token string
	now   int64
	stamp int64
	until int64
}

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
	fence        int64
}

// lockModel has two next states where an answer was lost: the request was
// applied, or it was not.
var lockModel = porcupine.NondeterministicModel{
	Partition: partitionByName,
	Init:      func() []any { return []any{modelState{}} },
	Step: func(state, input, output any) []any {
		s, in, out := state.(modelState), input.(modelInput), output.(modelOutput)
		next, applied := s.apply(in)
		if out.unknown {
			return []any{s, next}
		}
		if applied != out.applied || next.owner != out.owner || in.op == opAcquire && next.fence != out.fence {
			return nil
		}
		return []any{next}
	},
	Equal:             func(a, b any) bool { return a == b },
	DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v -> %+v", in, out) },
}

// apply is the state after a request, and whether the request was granted.
func (s modelState) apply(in modelInput) (modelState, bool) {
	mine := s.owner == in.token
	later := s.stamp < in.stamp
	switch in.op {
	case opAcquire:
		free := s.owner == "" || s.until < in.now
		if !(free && later) && !(mine && s.until <= in.until && s.stamp <= in.stamp) {
			return s, false
		}
		if s.fence == 0 {
			s.fence = in.now
		}
		return modelState{owner: in.token, until: in.until, stamp: in.stamp, fence: s.fence + 1}, true
	case opAbandon:
		s.stamp = max(s.stamp, in.stamp)
		if mine {
			return modelState{stamp: s.stamp, fence: s.fence}, true
		}
		return s, later
	}
	if mine {
		return modelState{stamp: s.stamp, fence: s.fence}, true
	}
	return s, false
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
