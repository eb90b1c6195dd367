package driver

import "context"

// Line is a [Store] in which the waiters for a name can stand in line, so that
// each of them knows how many are before it. A place in line grants nothing: it
// only tells package lock when to ask again. If the numbers are wrong, some
// waiters ask too early or too late.
type Line interface {
	Store
	// Join gives out the next place if the name has an owner, as [Row.Join] does.
	// The place is the Line of the Row that it returns. A copy of the request gives
	// out a place that no waiter takes.
	Join(ctx context.Context, name string) (Row, bool, error)
}
