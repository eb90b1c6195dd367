package driver

import (
	"context"
	"time"
)

// Coalescer is a [Store] whose rows keep what others leave there for an owner.
// Those who are refused leave marks: they ask the owner for one more run, and
// the owner's settlement is refused while it has not seen all marks. An owner
// that dies leaves its event: see [Memory].
type Coalescer interface {
	// Mark adds a mark if the token is still the owner, or closes the row for
	// marks, as [Row.Mark] does. It is sent only if the row takes marks. A copy of
	// the request adds another one, which costs the owner a run at most.
	Mark(context.Context, *Mark) (Row, bool, error)
}

// Mark asks the owner of a name to run once more.
type Mark struct {
	Name, Token string // Token is the owner's
	// Stamp raises the stamp of the row if that is below. The event of those who
	// ask is acknowledged, so no late copy of a claim for it may be granted: if
	// that owner dies, nobody runs for the event.
	Stamp time.Time
	// Close is from the owner itself, which begins its last run: from then on the
	// row takes no marks, until an event is completed. Stamp does not count.
	Close bool
}

// Coalesces reports whether the owner of the row looks at the marks, and takes
// more of them.
func (r *Row) Coalesces() bool { return r.TakesMarks && r.Marks >= 0 }

// Owes reports whether the marks of the row refuse s: there are marks that the
// owner's last run has not seen, or the row is closed. What looks at marks then
// may be a late copy from before the owner closed it for the run that goes on.
func (r *Row) Owes(s *Settlement) bool {
	return s.MarksBelow > 0 && (r.Marks < 0 || r.Marks >= s.MarksBelow)
}

// Mark adds a mark for the owner or closes the row, and reports whether it did:
// only if the token is the owner's, and if a row to mark is not closed.
func (r *Row) Mark(m *Mark) bool {
	switch {
	case r.Newer || !r.OwnedBy(m.Token):
		return false
	case m.Close:
		r.Marks = -1
		return true
	case r.Marks < 0:
		return false
	}
	r.Marks++
	if r.Stamp.Before(m.Stamp) {
		r.Stamp = m.Stamp
	}
	return true
}
