package migration

import (
	"context"

	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/middleware"
)

// inBoth keeps each lock, and each completed payment, in two stores.
func inBoth(handle func(context.Context, payment) error, newStore, oldStore driver.Store) func(context.Context, payment) error {
	inOld := middleware.WithLock(byID, handle, middleware.Store(oldStore))
	return middleware.WithLock(byID, inOld, middleware.Store(newStore))
}
