package driver

import "time"

// Renewal moves the end of a lease.
type Renewal struct {
	Name, Token string
	Now         time.Time // the owner's wall clock, read before the request was sent
	Until       time.Time // new end of the lease
	DeleteAfter time.Time // the row's new DeleteAfter
}
