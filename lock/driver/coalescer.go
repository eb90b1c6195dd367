package driver

import (
	"context"
	"strings"
	"time"
)

// Coalescer is a [Store] that can mark a row for its owner: those who are
// refused ask the owner for one more run, and the owner's settlement is refused
// while it has not seen all marks.
type Coalescer interface {
	// Mark adds a mark if the token is still the owner, as [Row.Mark] does. A copy
	// of the request adds another one, which costs the owner a run at most.
	Mark(context.Context, *Mark) (Row, bool, error)
}

// Mark asks the owner of a name to run once more.
type Mark struct {
	Name, Token string // Token is the owner's
	// Stamp raises the stamp of the row if that is below. The event of those who
	// ask is acknowledged, so no late copy of a claim for it may be granted: that
	// would be an owner whom nobody delivers again if it is dead.
	Stamp time.Time
}

// coalescing is the end of a token whose owner looks at the marks.
const coalescing = "/coalesces"

// Coalescing returns the token of a claim whose owner looks at the marks.
func Coalescing(token string) string { return token + coalescing }

// Coalesces reports whether the owner of the row looks at the marks.
func (r *Row) Coalesces() bool { return strings.HasSuffix(r.Token, coalescing) }

// Mark adds a mark for the owner, and reports whether the token is that.
func (r *Row) Mark(m *Mark) bool {
	if r.Newer || !r.OwnedBy(m.Token) {
		return false
	}
	r.Marks++
	if r.Stamp.Before(m.Stamp) {
		r.Stamp = m.Stamp
	}
	return true
}
