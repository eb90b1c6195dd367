package lock

import (
	"cmp"
	"fmt"
	"time"
)

// LeaseMode says how long a lease lasts and whether it is renewed. The zero
// value is a heartbeat of [DefaultLease].
type LeaseMode struct {
	kind  leaseKind
	lease time.Duration
}

// shortestWork is what Grace must leave of a lease, because one request may
// take that long.
const shortestWork = time.Second

type leaseKind int

const (
	heartbeatLease leaseKind = iota
	fixedLease
	deadlineLease
)

// Heartbeat returns a lease that is renewed while the work runs: after each
// third of its length, or sooner if it is shorter than three times Grace. Zero
// means [DefaultLease].
func Heartbeat(lease time.Duration) LeaseMode { return LeaseMode{heartbeatLease, lease} }

// FixedLease returns a lease that is not renewed. The work's context ends Grace
// before the lease does, with [ErrLost] as its cause. Zero is an error.
func FixedLease(lease time.Duration) LeaseMode { return LeaseMode{fixedLease, lease} }

// UntilDeadline returns a lease that ends Grace after the deadline of the
// context or, in a nested lock, of the context of the outermost lock. It needs
// no renewal if the work ends with its context. A lease whose work goes on
// regardless is renewed from shortly before that deadline on, for 6 s more than
// Grace each time, until the work ends or the process does: docs/PROTOCOL.md
// says why. If the context has no deadline, or one more than 90 minutes away, a
// heartbeat of [DefaultLease] is used.
func UntilDeadline() LeaseMode { return LeaseMode{kind: deadlineLease} }

// IsHeartbeat reports whether the lease is renewed from its beginning on.
func (m LeaseMode) IsHeartbeat() bool { return m.kind == heartbeatLease }

func (m LeaseMode) check(grace time.Duration) error {
	name := "Heartbeat"
	if m.kind == fixedLease {
		name = "FixedLease"
	}
	switch lease := cmp.Or(m.lease, DefaultLease); {
	case m.lease < 0:
		return &ConfigError{Reason: fmt.Sprintf("%s is negative (%v)", name, m.lease)}
	case m.kind == fixedLease && m.lease == 0:
		return &ConfigError{Reason: "FixedLease is zero: say how long the lease lasts"}
	case lease-shortestWork < grace: // a sum could overflow
		return &ConfigError{Reason: fmt.Sprintf("a lease of %v is too short for a Grace of %v, by which clocks may differ: the work would have to end that long before its lease; use a lease that is at least %v longer than Grace", lease, grace, shortestWork)}
	}
	return nil
}
