// Package explore runs the engine itself under every order of few deviations:
// another invocation goes first, a request or its answer is lost, a copy
// arrives late, time passes, an invocation is killed or fails. It has tests
// only.
//
// The runs with the fewest deviations come first, so the trace of a violation
// is one of the shortest. What is checked after every step are the promises of
// docs/PROMISES.md: one owner (P1), no two that work at the same time (P2),
// fences that rise (P3), no name that is held without a holder or cannot be
// taken (P4), events that stay completed (P5) and are acknowledged only then
// (P6), and work that does not begin twice (P8).
package explore
