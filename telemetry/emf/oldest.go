package emf

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// OldestHeld writes a line with the metric OldestHeld: for how many seconds one
// holder has had its lock, of all locks in the store the one that was acquired
// first. It is zero if none is held. A lock whose holder died, or that is in
// its cooldown, is not held.
//
// Call it every few minutes in a function of its own: it reads all rows, and
// needs the permission for that, on DynamoDB dynamodb:Scan. An alarm on the
// metric tells of work that does not end. No handler can: a metric about a lock
// is written when the lock has ended.
//
// The dimension service is the Service of the options or, if that is empty, the
// store by its name, such as "DynamoDB table orders-locks". Rows that cannot be
// read are left out. After an error nothing is written.
func OldestHeld(ctx context.Context, store driver.Inspector, o *Options) error {
	now := time.Now()
	oldest := now
	for row, err := range store.Rows(ctx, "") {
		switch {
		case err != nil && row.Name != "": // this row alone
		case err != nil:
			return err
		case row.Newer, row.Token == "", row.Cooling(), row.Until.Before(now):
		case row.Since().Before(oldest):
			oldest = row.Since()
		}
	}
	w, l, service := newWriter(o), &line{}, ""
	if s, ok := store.(fmt.Stringer); ok {
		service = s.String()
	}
	w.begin(l, service, now)
	l.define("OldestHeld", "Seconds")
	l.values = strconv.AppendInt(l.values, int64(now.Sub(oldest)/time.Second), 10)
	_, err := w.Output.Write(l.encode())
	return err
}
