package driver

import (
	"context"
	"iter"
)

// Inspector is a [Store] whose rows people can look at with a tool. Locks do
// not need it, so it may need permissions that a function does not have.
type Inspector interface {
	// Read returns the row of a name, or the zero Row if there is none.
	Read(ctx context.Context, name string) (Row, error)
	// Rows yields the rows whose names begin with prefix, in any order. A row that
	// changes meanwhile is yielded in one of its states.
	//
	// An error with a Name concerns that row alone, which cannot be read: it is
	// damaged, or something else is stored in its place. Rows goes on after it. An
	// error without a Name is the last: further rows may be missing.
	Rows(ctx context.Context, prefix string) iter.Seq2[NamedRow, error]
}

// NamedRow is a row and its name.
type NamedRow struct {
	Name string
	Row
}
