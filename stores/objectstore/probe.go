package objectstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// probeKey is the key of the object that Probe writes. No name has it.
const probeKey = "~probe"

// Probe checks that a service refuses a write whose condition does not hold.
// Some services that understand the requests of a well-known one ignore its
// conditions, and a lock kept there would be granted to everybody. The error is
// then a *driver.ConfigError. Probe cannot find a service that honours
// conditions only while nobody else writes. It also checks that the times of an
// answer are by one clock: nginx, for example, replaces Date with its own time.
//
// It writes the object "~probe" and leaves it, which takes up to four writes
// and two reads. It is safe to run at the same time in several processes.
func Probe(ctx context.Context, o Objects) error {
	for range rounds {
		done, err := probe(ctx, o)
		if done || err != nil {
			return err
		}
	}
	return &driver.Error{
		Store: o.String(), Temporary: true, Rejected: true, Conflict: true,
		Err: fmt.Errorf("object %s: others wrote it each time before the check of the service was complete", probeKey),
	}
}

// probe reports false if others wrote the object meanwhile.
func probe(ctx context.Context, o Objects) (bool, error) {
	_, err := writeProbe(ctx, o, "")
	if err == nil { // now it exists
		err = mustRefuse(ctx, o, "", "that an object does not exist (If-None-Match: *)")
	}
	if err != nil && !errors.Is(err, ErrChanged) {
		return false, err
	}
	object, err := o.Get(ctx, probeKey)
	began := time.Now()
	if err == nil {
		_, err = writeProbe(ctx, o, object.Version)
	}
	var written Object
	if err == nil {
		written, err = o.Get(ctx, probeKey)
	}
	if errors.Is(err, ErrNotExist) || errors.Is(err, ErrChanged) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := clocksAgree(o, &written, time.Since(began)); err != nil {
		return false, err
	}
	return true, mustRefuse(ctx, o, object.Version, "that an object has not changed (If-Match)")
}

// clocksAgree checks that an object was modified within the time that has
// passed since before it was written. A proxy may put its own clock into an
// answer. If that is behind, leases end late, which is safe; and some servers
// renew Date only once a second.
func clocksAgree(o Objects, written *Object, passed time.Duration) error {
	const ahead, behind = 2 * time.Second, 10 * time.Second // times may be whole seconds
	age := written.Now.Sub(written.Modified)
	if written.Now.IsZero() || written.Modified.IsZero() || -behind < age && age < passed+ahead {
		return nil
	}
	return &driver.ConfigError{
		Reason: fmt.Sprintf("%s: its answers have times of two clocks, %v apart, so nobody can tell when a lease ends: set the clocks of the server and of the proxy in front of it, or let the proxy pass the server's Date on",
			o.String(), age.Round(time.Second)),
	}
}

// mustRefuse sends a write whose condition does not hold. An error with which
// something else than the condition refuses it says nothing about conditions.
func mustRefuse(ctx context.Context, o Objects, version, condition string) error {
	_, err := writeProbe(ctx, o, version)
	if errors.Is(err, ErrChanged) {
		return nil
	}
	if err != nil {
		return err
	}
	return &driver.ConfigError{
		Reason: o.String() + ": the service does not check the condition " + condition +
			", so several callers could hold a lock at the same time: use a service or version with conditional writes, or another store",
	}
}

func writeProbe(ctx context.Context, o Objects, version string) (string, error) {
	body := fmt.Appendf(nil, "{\n  \"probe\": %q\n}\n", rand.Text()) // no two writes have the same version
	return o.Put(ctx, probeKey, body, version)
}
