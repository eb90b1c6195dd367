package inspect

import (
	"context"
	"iter"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// readable is a store whose Rows leave out those that cannot be read.
type readable struct {
	driver.Inspector
	skipped func(name string, err error)
	said    map[string]bool // names, of which nothing is said again
}

// Readable returns a store whose Rows leave out those that cannot be read:
// objects of other programs, and damaged rows. It calls skipped with each of
// them, once, also if all rows are read again and again.
func Readable(store driver.Inspector, skipped func(name string, err error)) driver.Inspector {
	return &readable{store, skipped, map[string]bool{}}
}

// Rows implements [driver.Inspector].
func (r *readable) Rows(ctx context.Context, prefix string) iter.Seq2[driver.NamedRow, error] {
	return func(yield func(driver.NamedRow, error) bool) {
		for row, err := range r.Inspector.Rows(ctx, prefix) {
			switch {
			case err != nil && row.Name != "":
				if !r.said[row.Name] {
					r.said[row.Name] = true
					r.skipped(row.Name, err)
				}
			case !yield(row, err):
				return
			}
		}
	}
}
