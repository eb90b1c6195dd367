// Package explore visits every state that the protocol can reach within small
// bounds: a few clients and names, a few requests that get no answer, copies
// that arrive late, crashes and freezes, in every order.
//
// [Run] does so with a model of the clients, whose rows are decided by
// [driver.Row.Judge]. It goes breadth first, so the trace of a violation is one
// of the shortest. Its invariants are the promises of docs/PROMISES.md: one
// owner (P1), no two that work at the same time (P2), fences that rise (P3), no
// name that is held for nobody or cannot be taken (P4), events that stay
// completed (P5) and are acknowledged only then (P6).
//
// The tests of this package also run the engine itself under every order of few
// deviations.
package explore
